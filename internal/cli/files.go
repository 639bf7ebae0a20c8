package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tapin/internal/approval"
	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/layout"
	"tapin/internal/logins"
	"tapin/internal/store"
)

// without is what it means to go on without a file that cannot be read, for
// those where that is not plain.
var without = map[string]string{
	"owners":        "Nobody is paired then but who is in config.yaml; tapin pair lets you in again.",
	"policies":      "Nothing is approved without asking then.",
	"console":       "Everybody is signed out of the console then.",
	"token":         "The next start makes another; agents read the file again.",
	"owner token":   "The next start makes another; nothing of yours is lost by it.",
	"further token": "Who used it needs a new one: tapin token new.",
	"usage":         "What was used this month is counted from zero then, also against a limit.",
	"inbox state":   "Messages are numbered anew then.",
	"installation":  "Browsers that still run at a provider under the old name are not found again then; they end by their own time.",
	"saved login":   "The login of the session before is used then, if there is one.",
	"login record":  "How fresh the login is is not known then, and it counts as used by nobody.",
	"webhook key":   "The next start makes another; give it to the receiver.",
	"session":       "That session is over then; its browser is ended by the next start.",
	"vault source":  "Where the key is is found out anew then: keychain, environment, file.",
}

// again is what a version before may allow that was taken back since.
var again = map[string]string{
	"owners":   "It may let in somebody whom you removed since: see tapin owners.",
	"policies": "What it allows without asking waits for your word again: see tapin policy.",
}

// examineFiles looks at every file of the home by itself, whether tapin runs or not.
func (a *app) examineFiles(home *store.Home) (found []finding) {
	damages, err := home.Examine()
	if err != nil {
		return []finding{findingOf("files", warn, err)}
	}
	var aside []string
	for _, d := range damages {
		kind, _ := layout.Of(d.File)
		switch {
		case d.Aside != "":
			aside = append(aside, d.Aside)
		case d.Kind == "folder":
			found = append(found, a.noFolder(d))
		case kind.Class == layout.Derived:
			found = append(found, finding{Name: "files", Verdict: note, Text: fmt.Sprintf("%s (%s) cannot be used: %s.", d.File, d.Kind, d.Why), Fix: "tapin puts it aside and makes it anew."})
		default:
			found = append(found, a.unreadable(home, d))
		}
	}
	if cfg, _, err := a.settings(); err == nil {
		manifest := config.Under(home.Path(), cfg.Integrations.Browserbase.ContextStore)
		if err := logins.Legible(manifest); err != nil {
			found = append(found, finding{
				Name: "files", Verdict: bad, Text: fmt.Sprintf("%s (manifest) cannot be read: %s. It is left as it is; what needs it answers %s.", a.tilde(manifest), fault.Of(err).Details(), fault.Unreadable),
				Fix: "Put right in an editor what it names.",
			})
		}
	}
	if len(aside) > 0 {
		found = append(found, finding{Name: "files", Verdict: note,
			Text: count(len(aside), "file") + " could not be used and lie beside the new ones, with .damaged- and the time in their names: " + several(aside, 3) + ".",
			Fix:  "Keep them if somebody shall look at them; nothing else needs them."})
	}
	if len(found) == 0 {
		return []finding{{Name: "files", Verdict: good, Text: "Every file of the home can be read."}}
	}
	return found
}

// several names the first few.
func several(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", …"
}

// noFolder is a finding about what stands where a folder of the home belongs.
func (a *app) noFolder(d store.Damage) finding {
	return finding{
		Name: "files", Verdict: warn, Text: fmt.Sprintf("%s (%s) cannot be used: %s.", d.File, d.Kind, d.Why),
		Fix: "tapin puts it aside where it needs the folder, and removes nothing; so does doctor --fix.",
		mend: &mend{does: "put " + d.File + " aside, and make the folder", do: func(context.Context) (string, error) {
			home, err := a.homeToMend()
			if err != nil {
				return "", err
			}
			defer func() { _ = home.Close() }()
			return d.File + " is a folder again. What stood there lies beside it.", home.Folder(d.File)
		}},
	}
}

// mendSchema writes the version of a home that has lost it, if all else in it is
// as this program writes it.
func (a *app) mendSchema() *mend {
	path, err := a.homePath()
	if err != nil {
		return nil
	}
	home, err := store.Glance(path)
	if err != nil {
		return nil
	}
	defer func() { _ = home.Close() }()
	err = home.Schemaless()
	if f := fault.Of(err); err != nil && f.Code == fault.Unreadable {
		return &mend{wont: f.Details() + " " + f.Advice()}
	}
	if err != nil {
		return nil
	}
	return &mend{does: fmt.Sprintf("write version %d into schema, as all else in the home is of that version", store.Schema()), asks: true, do: func(context.Context) (string, error) {
		home, err := store.Glance(path)
		if err != nil {
			return "", err
		}
		defer func() { _ = home.Close() }()
		return fmt.Sprintf("The home has version %d again. The damaged schema lies beside it.", store.Schema()), home.MendSchema()
	}}
}

// unreadable is a finding about a file that exists nowhere else.
func (a *app) unreadable(home *store.Home, d store.Damage) finding {
	file := strings.TrimSuffix(d.File, layout.BeforeMark)
	f := finding{Name: "files", Verdict: bad, Text: fmt.Sprintf("%s (%s) cannot be read: %s. It is left as it is; what needs it answers %s.", d.File, d.Kind, d.Why, fault.Unreadable)}
	if d.Kind == "vault key" || d.Kind == "fingerprint key" || d.Kind == "schema" {
		f.Fix = "Restore it from a backup. Nothing that tapin could put in its place would open what was sealed."
		return f
	}
	isBefore := file != d.File
	if before, err := home.Exists(file + layout.BeforeMark); err == nil && before && (!isBefore || !exists(home, file)) && d.Kind != "console" {
		f.Fix = "doctor --fix takes the version before, and keeps this one. " + again[d.Kind]
		// Who is let in is for somebody to look at, and not for a script.
		f.mend = &mend{does: "take the version before of " + file + ", and put the damaged one aside. " + again[d.Kind], asks: true, person: d.Kind == "owners", do: func(context.Context) (string, error) {
			home, err := a.homeToMend()
			if err != nil {
				return "", err
			}
			defer func() { _ = home.Close() }()
			if err := home.TakeBefore(file); err != nil {
				return "", err
			}
			if d.Kind == "policies" {
				if _, _, err := approval.Doubt(home, time.Now()); err != nil {
					return "", err
				}
			}
			return strings.TrimSpace("Took the version before of " + file + "; what changed after it was written is not in it. The damaged one lies beside it. " + again[d.Kind]), nil
		}}
		return f
	}
	f.Fix = "Restore it from a backup; or doctor --fix puts it aside, and tapin goes on without it. " + without[d.Kind]
	f.mend = &mend{does: "put " + d.File + " aside, and go on without it. " + without[d.Kind], asks: true, do: func(context.Context) (string, error) {
		home, err := a.homeToMend()
		if err != nil {
			return "", err
		}
		defer func() { _ = home.Close() }()
		aside, err := home.PutAside(d.File, errors.New(d.Why))
		if err != nil {
			return "", err
		}
		return strings.TrimSpace("It is " + aside + " now. " + without[d.Kind]), nil
	}}
	return f
}

// isAbout reports whether a trouble is one of a file that was found by itself.
func isAbout(trouble finding, files []finding) bool {
	for _, f := range files {
		if name, _, ok := strings.Cut(f.Text, " ("); ok && strings.Contains(trouble.Text, ": "+name+": ") {
			return true
		}
	}
	return false
}

func exists(home *store.Home, name string) bool {
	there, err := home.Exists(name)
	return err == nil && there
}

// mendCounter makes a home usable again whose number of starts cannot be read.
func (a *app) mendCounter() *mend {
	path, err := a.homePath()
	if err != nil {
		return nil
	}
	home, err := store.Glance(path)
	if err != nil {
		return nil
	}
	defer func() { _ = home.Close() }()
	damages, err := home.Examine()
	if err != nil {
		return nil
	}
	for _, d := range damages {
		if d.Kind != "counter" || d.Aside != "" {
			continue
		}
		return &mend{does: "put " + d.File + " aside, and count on from a number that cannot have been used", asks: true, do: func(context.Context) (string, error) {
			home, err := store.Glance(path)
			if err != nil {
				return "", err
			}
			defer func() { _ = home.Close() }()
			return "tapin counts its starts from another number now. The damaged file lies beside it.", home.MendCounter(strings.TrimPrefix(d.File, "counters/"))
		}}
	}
	return nil
}
