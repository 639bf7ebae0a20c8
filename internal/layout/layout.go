// Package layout is the one list of the kinds of files that a home has.
// It owns their names, where they lie and what may become of each: what is put
// aside and made anew, what is never touched when it cannot be read, what a
// backup carries. It must never open a file.
package layout

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Class says what a file is worth.
type Class string

// The classes.
const (
	Truth   Class = "truth"   // exists nowhere else; never overwritten or removed when it cannot be read
	Key     Class = "key"     // a truth that opens something, and is shown to nobody
	Derived Class = "derived" // made anew from the truth, or found out again; put aside when it cannot be used
	Log     Class = "log"     // for people to read; nothing is decided from it
	Runtime Class = "runtime" // of processes that run; means nothing once they have ended
)

// Kind is one kind of file.
type Kind struct {
	Name    string // for people: "figures", "saved login"
	Pattern string // relative to the home; * is a part of one name, a last ** everything below
	Class   Class
	About   string // what it holds, in a sentence
}

// DamagedMark stands in the name of a file that was put aside, before the time.
const DamagedMark = ".damaged-"

// BeforeMark ends the name of the version before of a file.
const BeforeMark = ".before"

// Demo is the folder of the demo's home, which has the same kinds of files.
const Demo = "demo"

// Restoring and Before are folders of other homes in a home that is where a
// file system begins: the one that it becomes, and those that it was.
const (
	Restoring = "restoring"
	Before    = "before"
)

// kinds are in the order in which they are looked at: the first that fits.
var kinds = []Kind{
	{"put aside", "**" + DamagedMark + "*", Log, "A file that could not be used, as it was found, under its name and the time."},
	{"version before", "**" + BeforeMark, Truth, "What stood in the file of that name before its last change but one; `tapin doctor --fix` can put it back."},

	{"schema", "schema", Truth, "The version of this layout. A home that is newer than the program is refused."},
	{"counter", "counters/epoch", Truth, "How often tapin was started here. A number is never given twice, so a browser obeys the newest sidecar alone."},
	{"installation", "install.id", Truth, "The name of this tapin where several use one account of a browser provider."},
	{"site to forget", "forget.json", Truth, "A site that is being forgotten, until nothing of it is left."},
	{"settings", "config.yaml", Truth, "What the owner has set."},
	{"settings draft", "config.draft.yaml", Truth, "An edit of the settings that is not finished."},

	{"token", "agent.token", Key, "What an agent shows to the API."},
	{"owner token", "owner.token", Key, "What the owner's own programs show to the API."},
	{"further token", "tokens/*.token", Key, "The tokens that tapin token made, one file each."},
	{"vault key", "vault.key", Key, "The key that opens what is sealed, where no keychain has it."},
	{"vault key", "vault-*.key", Key, "The same, once the key was changed."},
	{"change of the key", "vault.next", Key, "That a new key is on its way, until the old one is gone."},
	{"vault source", "vault.source", Truth, "Where the key is, and its public half."},
	{"credential names", "credentials.json", Truth, "Which credentials the keychain has, by site; no value."},
	{"webhook key", "webhook.key", Key, "What signs the calls that wake an agent."},
	{"fingerprint key", "handoffs/fingerprint.key", Key, "What keeps anybody from trying out which page has which fingerprint."},

	{"manifest", "browser-contexts.yaml", Truth, "The saved logins as people see and edit them."},
	{"manifest draft", ".browser-contexts.yaml.tapin", Runtime, "The manifest while it is written."},
	{"saved login", "contexts/*.age", Truth, "Cookies and storage of a login, sealed."},
	{"saved login before", "contexts/*.age.1", Truth, "The same, as the session before left it."},
	{"login record", "contexts/*.json", Truth, "Who uses a saved login, and how fresh it is."},

	{"session", "sessions/*.json", Truth, "What is needed to go on with a session."},
	{"open session", "sessions/open/*", Truth, "Which sessions are not over, an empty file each."},
	{"session state", "sessions/*.state", Truth, "What a parked session takes up again, sealed."},
	{"session undo", "sessions/*.undo", Truth, "What an import replaces, sealed, until the import is over."},

	{"open hand-off", "handoffs/open/*", Truth, "Which hand-offs are not over, an empty file each."},
	{"list of hand-offs", "handoffs/list/*.jsonl", Truth, "All hand-offs in the order in which they came."},
	{"hand-off", "handoffs/*/meta.json", Truth, "A hand-off: what was asked, how it stands, how it ended."},
	{"hand-off news", "handoffs/*/events.jsonl", Derived, "What the feed was told of it, beside it."},
	{"hand-off photo", "handoffs/*/photo.age", Derived, "The picture for its message, sealed, until it is delivered."},
	{"hand-off picture", "handoffs/*/*.png", Truth, "The page before or after it, where that was asked for."},
	{"hand-off picture", "handoffs/*/*.jpeg", Truth, "The page before or after it, where that was asked for."},
	{"to-do", "todos/*.json", Truth, "What a hand-off left undone, a file each."},

	{"policies", "policies.json", Truth, "What is approved without asking, what of it is spent, and which buttons are no payment."},
	{"open approval", "approvals/open/*", Truth, "Which payments are not over, an empty file each."},
	{"approval", "approvals/*.json", Truth, "A payment: what was asked for, who said what, what came of it."},
	{"approval picture", "approvals/*.crop", Derived, "The part of the page that its message shows, sealed."},

	{"open run", "task-runs/open/*", Truth, "Which runs have something left to tell, an empty file each."},
	{"list of runs", "task-runs/list/*.jsonl", Truth, "All runs in the order in which they came."},
	{"run", "task-runs/*/meta.json", Truth, "A run: its goal, how it stands, its evidence."},
	{"run news", "task-runs/*/events.jsonl", Derived, "What the feed was told of it, beside it."},

	{"link", "links/*.json", Truth, "A personal link into a browser, by digests that open nothing."},
	{"public address", "links/public", Derived, "The address that a tunnel told; it tells it again."},
	{"owners", "owners.json", Truth, "Who may speak for the owner in the chat."},
	{"console", "console.json", Truth, "Which devices are signed in to the console, by digests."},
	{"inbox state", "inbox/state.json", Truth, "Which messages the agent has read."},
	{"message", "inbox/*.json", Truth, "What the owner said to the agent, until it has read it."},

	{"chat card", "telegram/cards/*.json", Derived, "What the chat shows of a hand-off or a payment; what is open is shown anew."},
	{"chat answer", "telegram/queue/*.json", Truth, "What is still to be said in the chat."},
	{"chat progress", "telegram/progress.json", Derived, "How far Telegram was read; it keeps what was not confirmed to it."},
	{"chat cursor", "telegram/cursor.json", Derived, "How far the chat has followed the feed."},
	{"wake", "wakes/open/*.json", Truth, "An agent that is still to be woken."},
	{"wake cursor", "wakes/cursor.json", Derived, "How far wakes have followed the feed."},
	{"letter", "letters/*.json", Truth, "What the daemon has to tell the feed, until it is told. One that is none is put aside."},
	{"feed", "events/*.jsonl", Truth, "The news that GET /events tells, in their order."},
	{"journal", "journal/journal-*.jsonl", Log, "Who did what, a line each, a file a day."},
	{"usage", "usage.json", Truth, "What billed browsers came to, for the limit of a month."},

	{"figures", "figures.json", Derived, "How asking went, counted from the hand-offs and payments."},
	{"browser version", "chromium.json", Derived, "The version of the browser, so that it need not be asked."},

	{"download", "downloads/**", Truth, "Files that pages gave, until their session is over."},
	{"upload", "received/**", Truth, "Files that a person sent through a link, until the session is over."},

	{"log", "logs/**", Log, "What tapin's own processes say."},
	{"crash report", "crashes/*.json", Log, "What tapin died of, or nearly: functions and lines, and nothing that a page gave."},
	{"crash report", "crashes/.new-*", Runtime, "A report while it is written."},
	{"left out", "left-out.json", Derived, "Which rooms the next start does without, because it crashed in them."},
	{"daemon's troubles", "troubles.json", Runtime, "What does not work in the daemon, for /health to show."},

	{"browser", "run/**", Runtime, "A folder for each browser that runs: its profile and its holder's socket."},
	{"lock", "locks/*", Runtime, "Which process does what; freed by the system."},
	{"write under way", "tmp/**", Runtime, "Files that do not have their name yet."},
	{"mark of a restore", ".restoring", Runtime, "That a home is being unpacked from a backup, and is none yet."},
	{"swap of a restore", ".swap-*", Runtime, "That a home is exchanged entry by entry, where it cannot be as a whole; nobody opens it until that has ended."},
	{"home to be", Restoring + "/**", Runtime, "A home that is unpacked in the one that it replaces, where nothing can lie beside that."},
	{"home before", Before + "/**", Log, "The homes that were here before a restore, where they could not be put aside beside this one."},
	{"control address", "control.addr", Runtime, "Where the API listens."},
	{"way for phones", "reach.json", Runtime, "How phones get here, as the daemon knows it."},
	{"tunnel settings", "tunnel.yml", Runtime, "Keeps the tunnel program from reading settings that are not tapin's."},

	{"demo shop key", "shop.key", Key, "What signs the orders of the demo's shop."},
	{"demo shop port", "shop.port", Runtime, "Where the demo's shop listened the last time."},
	{"demo phone", "phone/**", Runtime, "The browser of the demo's owner."},
}

// Kinds lists all kinds.
func Kinds() []Kind { return append([]Kind(nil), kinds...) }

// Folders are those of a home that are there whatever it holds, each before
// those in it. Folders of a single record are none of them.
func Folders() []string { return append([]string(nil), folders...) }

var folders = foldersOf(kinds)

func foldersOf(kinds []Kind) (all []string) {
	for _, k := range kinds {
		dir, above := path.Dir(k.Pattern), ""
		if below, ok := strings.CutSuffix(k.Pattern, "/**"); ok {
			dir = below
		}
		for part := range strings.SplitSeq(dir, "/") {
			if above = path.Join(above, part); strings.Contains(part, "*") || part == "." {
				break
			}
			if !slices.Contains(all, above) {
				all = append(all, above)
			}
		}
	}
	return all
}

var damaged = regexp.MustCompile(regexp.QuoteMeta(DamagedMark) + `\d{8}T\d{6}\.\d{3}Z$`)

// Of is the kind of a file, by its path relative to the home.
func Of(name string) (Kind, bool) {
	name = path.Clean(strings.ReplaceAll(name, "\\", "/"))
	name = strings.TrimPrefix(name, Demo+"/")
	for _, k := range kinds {
		if k.fits(name) {
			return k, true
		}
	}
	return Kind{}, false
}

// Original is the name that a file had which was put aside, or whose version
// before it is.
func Original(name string) (original string, aside bool) {
	if at := damaged.FindStringIndex(name); at != nil && at[0] > 0 {
		return name[:at[0]], true
	}
	return strings.CutSuffix(name, BeforeMark)
}

func (k Kind) fits(name string) bool {
	switch {
	case k.Pattern == "**"+DamagedMark+"*":
		return damaged.MatchString(name)
	case strings.HasPrefix(k.Pattern, "**"):
		return strings.HasSuffix(name, k.Pattern[2:]) && len(path.Base(name)) > len(k.Pattern)-2
	}
	if below, ok := strings.CutSuffix(k.Pattern, "/**"); ok {
		return strings.HasPrefix(name, below+"/")
	}
	ok, _ := path.Match(k.Pattern, name)
	return ok
}
