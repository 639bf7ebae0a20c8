package layout

// Forgetting is what becomes of a kind of file when a site is to be forgotten.
type Forgetting string

// What can become of one.
const (
	ForgetNothing Forgetting = "nothing" // it never says anything of a site, or is the owner's own text
	ForgetFile    Forgetting = "file"    // it goes where it mentions the site, or a record that goes
	ForgetRecord  Forgetting = "record"  // the same, and all that is kept beside it goes too
	ForgetAlike   Forgetting = "alike"   // it goes where it is of the site, or of a record that goes; else what mentions it goes
	ForgetBeside  Forgetting = "beside"  // it goes with its record, and with nothing else
	ForgetLines   Forgetting = "lines"   // those of its lines go that mention it
	ForgetMembers Forgetting = "members" // those parts of it go that are of the site
	ForgetLogin   Forgetting = "login"   // the saved logins see to it
)

// forgetting is by pattern.
var forgetting = map[string]Forgetting{
	"**" + DamagedMark + "*": ForgetFile, "**" + BeforeMark: ForgetFile,

	"schema": ForgetNothing, "counters/epoch": ForgetNothing, "install.id": ForgetNothing, "config.yaml": ForgetNothing, "config.draft.yaml": ForgetNothing,
	"agent.token": ForgetNothing, "owner.token": ForgetNothing, "tokens/*.token": ForgetNothing, "vault.key": ForgetNothing, "vault-*.key": ForgetNothing,
	"vault.next": ForgetNothing, "vault.source": ForgetNothing, "webhook.key": ForgetNothing, "handoffs/fingerprint.key": ForgetNothing,
	"credentials.json": ForgetLogin, "browser-contexts.yaml": ForgetLogin, ".browser-contexts.yaml.tapin": ForgetLogin,
	"contexts/*.age": ForgetLogin, "contexts/*.age.1": ForgetLogin, "contexts/*.json": ForgetLogin,

	"sessions/*.json": ForgetRecord, "sessions/open/*": ForgetBeside, "sessions/*.state": ForgetBeside, "sessions/*.undo": ForgetBeside,
	"links/*.json": ForgetFile, "links/public": ForgetNothing, "downloads/**": ForgetBeside, "received/**": ForgetBeside,

	"handoffs/*/meta.json": ForgetRecord, "handoffs/open/*": ForgetBeside, "handoffs/list/*.jsonl": ForgetNothing, "handoffs/*/events.jsonl": ForgetLines,
	"handoffs/*/photo.age": ForgetBeside, "handoffs/*/*.png": ForgetBeside, "handoffs/*/*.jpeg": ForgetBeside, "todos/*.json": ForgetAlike,

	"policies.json": ForgetMembers, "approvals/*.json": ForgetRecord, "approvals/open/*": ForgetBeside, "approvals/*.crop": ForgetBeside,
	"task-runs/*/meta.json": ForgetRecord, "task-runs/open/*": ForgetBeside, "task-runs/list/*.jsonl": ForgetNothing, "task-runs/*/events.jsonl": ForgetLines,

	"owners.json": ForgetNothing, "console.json": ForgetNothing, "inbox/state.json": ForgetNothing, "inbox/*.json": ForgetFile,
	"telegram/cards/*.json": ForgetFile, "telegram/queue/*.json": ForgetFile, "telegram/progress.json": ForgetMembers, "telegram/cursor.json": ForgetNothing,
	"wakes/open/*.json": ForgetFile, "wakes/cursor.json": ForgetNothing, "letters/*.json": ForgetFile,
	"events/*.jsonl": ForgetLines, "journal/journal-*.jsonl": ForgetLines, "usage.json": ForgetNothing,
	"figures.json": ForgetMembers, "chromium.json": ForgetNothing, "logs/**": ForgetLines,

	"crashes/*.json": ForgetFile, "crashes/.new-*": ForgetFile, "left-out.json": ForgetNothing, "troubles.json": ForgetFile,
	"run/**": ForgetNothing, "locks/*": ForgetNothing, "tmp/**": ForgetNothing, ".restoring": ForgetNothing, ".swap-*": ForgetNothing, Restoring + "/**": ForgetNothing, Before + "/**": ForgetNothing, "control.addr": ForgetNothing,
	"reach.json": ForgetNothing, "tunnel.yml": ForgetNothing, "forget.json": ForgetNothing,
	"shop.key": ForgetNothing, "shop.port": ForgetNothing, "phone/**": ForgetNothing,
}

// ForgettingOf says what becomes of a kind; nobody has decided if not ok.
func ForgettingOf(k Kind) (Forgetting, bool) {
	f, ok := forgetting[k.Pattern]
	return f, ok
}
