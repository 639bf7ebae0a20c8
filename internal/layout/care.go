package layout

import "strings"

// Care says what a backup does with a kind of file.
type Care struct {
	// Carried is whether a backup has it. What is not carried means nothing in
	// another life of the home, or is made again.
	Carried bool
	Why     string // of what is not carried
}

const (
	ofSessions = "Sessions end with the home they ran in."
	ofTelling  = "It was told, or will be, by the home it is of."
	ofKeys     = "The key itself is in the backup, wherever it was kept."
	ofBefore   = "It may allow what was taken back since."
	ofProcess  = "It means nothing without the processes of that moment."
	ofAgain    = "It is made again."
	ofDemo     = "The demo's is a home of its own, made anew each time."
)

// left are the kinds that a backup does not carry, by pattern.
var left = map[string]string{
	"**" + BeforeMark: ofBefore,

	"vault.key": ofKeys, "vault-*.key": ofKeys, "vault.next": ofKeys, "vault.source": ofKeys,

	".browser-contexts.yaml.tapin": ofProcess,

	"sessions/*.json": ofSessions, "sessions/open/*": ofSessions, "sessions/*.state": ofSessions, "sessions/*.undo": ofSessions,
	"downloads/**": ofSessions, "received/**": ofSessions, "links/*.json": ofSessions,
	"handoffs/*/photo.age": ofSessions, "approvals/*.crop": ofSessions,

	"links/public": ofAgain, "figures.json": ofAgain, "chromium.json": ofAgain,
	"console.json": "Devices sign in again.",

	"telegram/cards/*.json": ofTelling, "telegram/queue/*.json": ofTelling, "telegram/cursor.json": ofTelling,
	"wakes/open/*.json": ofTelling, "wakes/cursor.json": ofTelling, "letters/*.json": ofTelling, "events/*.jsonl": ofTelling,

	"crashes/*.json": ofProcess, "crashes/.new-*": ofProcess, "left-out.json": ofAgain, "troubles.json": ofProcess,
	"logs/**": ofProcess, "run/**": ofProcess, "locks/*": ofProcess, "tmp/**": ofProcess, "control.addr": ofProcess,
	"reach.json": ofProcess, ".restoring": ofProcess, ".swap-*": ofProcess, "tunnel.yml": ofProcess,

	Restoring + "/**": ofProcess, Before + "/**": "It is a home of its own; a backup is of one.",

	"shop.key": ofDemo, "shop.port": ofDemo, "phone/**": ofDemo, // and all else of its
}

// carried are those that it does.
var carried = []string{
	"**" + DamagedMark + "*", "schema", "counters/epoch", "install.id", "forget.json", "config.yaml", "config.draft.yaml",
	"agent.token", "owner.token", "tokens/*.token", "credentials.json", "webhook.key", "handoffs/fingerprint.key",
	"browser-contexts.yaml", "contexts/*.age", "contexts/*.age.1", "contexts/*.json",
	"handoffs/open/*", "handoffs/list/*.jsonl", "handoffs/*/meta.json", "handoffs/*/events.jsonl", "handoffs/*/*.png", "handoffs/*/*.jpeg", "todos/*.json",
	"policies.json", "approvals/open/*", "approvals/*.json",
	"task-runs/open/*", "task-runs/list/*.jsonl", "task-runs/*/meta.json", "task-runs/*/events.jsonl",
	"owners.json", "inbox/state.json", "inbox/*.json", "telegram/progress.json", "journal/journal-*.jsonl", "usage.json",
}

// CareOf says what a backup does with a kind; nobody has decided if not ok.
func CareOf(k Kind) (Care, bool) {
	if why, ok := left[k.Pattern]; ok {
		return Care{Why: why}, true
	}
	for _, pattern := range carried {
		if pattern == k.Pattern {
			return Care{Carried: true}, true
		}
	}
	return Care{}, false
}

// Carried reports whether a backup has a file. One that nobody knows was put
// there by its owner, and is carried.
func Carried(name string) bool {
	if original, aside := Original(name); aside && !Carried(original) {
		return false
	}
	if strings.HasPrefix(name, Demo+"/") {
		return false
	}
	k, ok := Of(name)
	if !ok {
		return true
	}
	care, _ := CareOf(k)
	return care.Carried
}

// NothingCarried reports whether a backup has nothing of a folder, so that it
// need not be looked into.
func NothingCarried(folder string) bool {
	if folder == Demo {
		return true
	}
	for _, k := range kinds {
		if k.Pattern == folder+"/**" {
			care, _ := CareOf(k)
			return !care.Carried
		}
	}
	return false
}
