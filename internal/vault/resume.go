package vault

import (
	"bytes"
	"context"
	"log/slog"

	"filippo.io/age"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

// resume goes on with a change that was begun before. The key of the environment
// is known to be the person's own only while they show it: a change to one that
// nobody shows is not brought to its end, nor is another one put in its place.
func (v *Vault) resume(ctx context.Context, n nextRecord, how RekeyOptions, begin bool, log *slog.Logger) (done Rekeyed, err error) {
	const op = "change the key"
	back := false
	switch {
	case n.Key.Source != FromEnvironment && !how.Key.IsEmpty():
		return done, fault.New(fault.InvalidRequest, op, "the key is in the %s, where a new one is made", n.Key.Source).WithHint("Give none.")
	case n.Key.Source != FromEnvironment:
	case !begin && !v.shows(n.Key):
		log.Warn("a change of the sealing key is not over, and " + keyVariable + " has the old one; both open what is sealed. Set it to the new one, or run tapin vault rekey again")
		return done, nil
	case begin:
		const hint = "Give the key that it was begun with; or the one from before, which takes the change back."
		if how.Key.IsEmpty() {
			return done, fault.New(fault.InvalidRequest, op, "a change was begun before and is not over").WithHint(hint)
		}
		given, err := parseKey(how.Key, "what was given")
		if err != nil {
			return done, err
		}
		back = given.Recipient().String() == n.Old.Recipient
		if !back && given.Recipient().String() != n.Key.Recipient {
			return done, fault.New(fault.InvalidRequest, op, "a change to another key was begun before and is not over; nothing was done").WithHint(hint)
		}
		if back {
			if err := how.Begin(); err != nil {
				return done, err
			}
			done, err = v.goBack(ctx, n, given)
			return done, err
		}
	}
	if err := how.Begin(); err != nil {
		return done, err
	}
	if how.KeepOld && !n.Keep {
		n.Keep = true
		if err := v.home.WriteJSON(nextFile, n); err != nil {
			return done, err
		}
	}
	done, err = v.goOn(ctx, n)
	done.Resumed = true
	return done, err
}

// goBack seals everything with the old key again. Until the record of the change
// is gone, at the very end, each of the two opens everything.
func (v *Vault) goBack(ctx context.Context, n nextRecord, old *age.X25519Identity) (done Rekeyed, err error) {
	done.Source, done.Back = n.Old.Source, true
	if v.Recipient() == n.Key.Recipient {
		if err := v.home.WriteJSON(sourceFile, n.Old); err != nil {
			return done, err
		}
		v.next = v.identity
	}
	v.identity, v.next = v.next, old
	if done.Files, done.Strange, err = v.sealAnew(ctx); err != nil {
		return done, err
	}
	v.identity, v.at, v.next = old, n.Old, nil
	return done, v.home.Remove(nextFile)
}

// wrapKey seals one key of a change with the other one.
func wrapKey(id, other *age.X25519Identity) ([]byte, error) {
	var sealed bytes.Buffer
	err := encrypt(&sealed, nextFile, "", []byte(id.String()), other.Recipient())
	return sealed.Bytes(), err
}

func unwrapKey(sealed []byte, other *age.X25519Identity) (*age.X25519Identity, error) {
	plain, err := decrypt(nextFile, "", sealed, []age.Identity{other}, "it was sealed with another key", "Set "+keyVariable+" to the key used before.")
	if err != nil {
		return nil, err
	}
	return parseKey(secret.New(string(plain)), nextFile)
}

// ofTwo is the wanted key, where the environment has it, or has the other one of
// a change that is not over: until it is, each of the two opens everything.
func (v *Vault) ofTwo(has *age.X25519Identity, want string) (*age.X25519Identity, error) {
	is := has.Recipient().String()
	if is == want {
		return has, nil
	}
	var n nextRecord
	err := v.home.ReadRecord(nextFile, &n, n.check)
	switch {
	case missing(err):
		return has, nil
	case err != nil:
		return nil, err
	case is == n.Old.Recipient && want == n.Key.Recipient && n.Sealed != nil:
		return unwrapKey(n.Sealed, has)
	case is == n.Key.Recipient && want == n.Old.Recipient && n.Before != nil:
		return unwrapKey(n.Before, has)
	}
	return has, nil
}

// shows reports whether the environment has the key of a record.
func (v *Vault) shows(at sourceRecord) bool {
	id, err := v.keyFromEnvironment()
	return err == nil && id.Recipient().String() == at.Recipient
}
