package fault

// Code names a kind of failure. It is an error itself, so that
// errors.Is(err, fault.NoSession) reads as it should.
type Code string

// The codes of the contract.
const (
	InvalidRequest        Code = "INVALID_REQUEST"
	Unauthorized          Code = "UNAUTHORIZED"
	Forbidden             Code = "FORBIDDEN"
	ApprovalRequired      Code = "APPROVAL_REQUIRED"
	ApprovalExpired       Code = "APPROVAL_EXPIRED"
	NotFound              Code = "NOT_FOUND"
	NoSession             Code = "NO_SESSION"
	SessionActive         Code = "SESSION_ACTIVE"
	HumanInControl        Code = "HUMAN_IN_CONTROL"
	HandoffActive         Code = "HANDOFF_ACTIVE"
	HandoffNotRunning     Code = "HANDOFF_NOT_RUNNING"
	LinkClaimed           Code = "LINK_CLAIMED"
	LinkExpired           Code = "LINK_EXPIRED"
	InvalidURL            Code = "INVALID_URL"
	BlockedTarget         Code = "BLOCKED_TARGET"
	NavigationTimeout     Code = "NAVIGATION_TIMEOUT"
	NavigationFailed      Code = "NAVIGATION_FAILED"
	WaitTimeout           Code = "WAIT_TIMEOUT"
	ElementNotFound       Code = "ELEMENT_NOT_FOUND"
	ElementNotActionable  Code = "ELEMENT_NOT_ACTIONABLE"
	StaleRef              Code = "STALE_REF"
	DialogOpen            Code = "DIALOG_OPEN"
	NoFocusedField        Code = "NO_FOCUSED_FIELD"
	EmptyExtraction       Code = "EMPTY_EXTRACTION"
	ImageTooLarge         Code = "IMAGE_TOO_LARGE"
	PayloadTooLarge       Code = "PAYLOAD_TOO_LARGE"
	SessionCreateFailed   Code = "SESSION_CREATE_FAILED"
	ProviderError         Code = "PROVIDER_ERROR"
	ProviderNotConfigured Code = "PROVIDER_NOT_CONFIGURED"
	BrowserLost           Code = "BROWSER_LOST"
	IntegrityMismatch     Code = "INTEGRITY_MISMATCH"
	OriginMismatch        Code = "ORIGIN_MISMATCH"
	ContextLocked         Code = "CONTEXT_LOCKED"
	RateLimited           Code = "RATE_LIMITED"
	Busy                  Code = "BUSY"
	Disabled              Code = "DISABLED"
	StorageFull           Code = "STORAGE_FULL"
	Unreadable            Code = "UNREADABLE"
	Internal              Code = "INTERNAL"
)

// Exit codes of the command line, by the kind of failure.
const (
	ExitFailure  = 1 // something went wrong that a retry may not mend
	ExitUsage    = 2 // the caller's input
	ExitNotFound = 3 // nothing there
	ExitRefused  = 4 // not allowed, or not now
	ExitBrowser  = 5 // the page or the browser
	ExitRetry    = 6 // may work later
)

type entry struct {
	code     Code
	status   int
	exit     int
	sentence string
	hint     string
}

// table is the only place where a code gets its meaning.
var table = []entry{
	{InvalidRequest, 400, ExitUsage, "The request cannot be understood.", "Compare the body with GET /openapi.json."},
	{Unauthorized, 401, ExitRefused, "The request carries no valid token.", "Send Authorization: Bearer with the contents of agent.token or owner.token from tapin's home."},
	{Forbidden, 403, ExitRefused, "This token may not do that.", "Ask the owner, or use the owner's token."},
	{ApprovalRequired, 403, ExitRefused, "This looks like a payment and needs the owner's approval.", "Request one with POST /approval/request, then repeat the click with its approval_id."},
	{ApprovalExpired, 410, ExitRefused, "The approval has expired or was used.", "Request a new one with POST /approval/request."},
	{NotFound, 404, ExitNotFound, "There is nothing under that name.", "List what exists, and check the spelling."},
	{NoSession, 404, ExitNotFound, "No session is active.", "Start one with POST /session/start or tapin open URL."},
	{SessionActive, 409, ExitRefused, "A session is active already.", "Use it, or stop it first with POST /session/stop."},
	{HumanInControl, 409, ExitRefused, "A person is driving this browser.", "Wait with GET /handoff/{id}?wait_ms=…; the answer tells when you may go on."},
	{HandoffActive, 409, ExitRefused, "A hand-off is running already.", "Wait for it, or cancel it first."},
	{HandoffNotRunning, 409, ExitRefused, "That hand-off is over.", "Read its result with GET /handoff/{id}."},
	{LinkClaimed, 409, ExitRefused, "Another device has claimed this link.", "The owner can move it to this device."},
	{LinkExpired, 410, ExitRefused, "This link no longer works.", "Ask for a new one."},
	{InvalidURL, 400, ExitUsage, "That is not an address a page can be opened at.", "Give a full http:// or https:// address."},
	{BlockedTarget, 403, ExitRefused, "The network guard does not let pages reach that address.", "If the address is yours to open, name it under egress.allow in config.yaml, or start tapin with --allow-private."},
	{NavigationTimeout, 504, ExitBrowser, "The page did not become usable in time.", "Try again, or give a longer timeout."},
	{NavigationFailed, 502, ExitBrowser, "The page could not be opened.", "Check the address; the details give the browser's reason."},
	{WaitTimeout, 504, ExitBrowser, "What was waited for did not happen in time.", "Look at a screenshot or snapshot of the page."},
	{ElementNotFound, 404, ExitBrowser, "No such element is on the page.", "Take a snapshot and use one of its refs."},
	{ElementNotActionable, 409, ExitBrowser, "The element is there, but a person could not use it now.", "The details say what is in the way."},
	{StaleRef, 409, ExitBrowser, "That ref is from an older page.", "Take a new snapshot."},
	{DialogOpen, 409, ExitBrowser, "The page has a dialog open.", "Answer it with POST /session/dialog."},
	{NoFocusedField, 409, ExitBrowser, "No editable field has the focus.", "Click the field first, or name it."},
	{EmptyExtraction, 422, ExitBrowser, "Nothing on the page matches.", "Check the selector against a snapshot."},
	{ImageTooLarge, 422, ExitBrowser, "The picture is over the limit.", "Ask for the viewport instead of the full page, or for JPEG."},
	{PayloadTooLarge, 413, ExitUsage, "The request body is over the limit.", "Send less."},
	{SessionCreateFailed, 502, ExitBrowser, "No browser could be started.", "Run tapin doctor."},
	{ProviderError, 502, ExitRetry, "The browser's provider answered with an error.", "Try again; the details give its answer."},
	{ProviderNotConfigured, 503, ExitUsage, "That provider is not set up.", "Set it up in config.yaml, or use provider: local."},
	{BrowserLost, 503, ExitRetry, "The browser is gone.", "Start a new session; the saved login comes back with it."},
	{IntegrityMismatch, 422, ExitUsage, "The envelope was changed after it was made.", "Export it again."},
	{OriginMismatch, 409, ExitUsage, "That belongs to another site.", "Open the right site first, or import without strictOrigin."},
	{ContextLocked, 409, ExitRefused, "That saved login is in use.", "Stop the session that uses it."},
	{RateLimited, 429, ExitRetry, "Too many requests.", "Wait as long as Retry-After says."},
	{Busy, 503, ExitRetry, "tapin has its hands full.", "Try again in a moment."},
	{Disabled, 403, ExitRefused, "That is switched off here.", "The owner can switch it on in config.yaml."},
	{StorageFull, 507, ExitFailure, "The disk is full; nothing was changed.", "Free some space on the disk of tapin's home."},
	{Unreadable, 503, ExitFailure, "A file in tapin's home cannot be read; it was left as it is.", "Run tapin doctor --fix: it says what can be done. Everything else works."},
	{Internal, 500, ExitFailure, "Something went wrong inside tapin.", "See the log (tapin doctor names it) for what happened."},
}

var byCode = func() map[Code]entry {
	m := make(map[Code]entry, len(table))
	for _, e := range table {
		m[e.code] = e
	}
	return m
}()

func (c Code) entry() entry {
	if e, ok := byCode[c]; ok {
		return e
	}
	return byCode[Internal]
}

func (c Code) Error() string { return string(c) }

// Status is the HTTP status of the code.
func (c Code) Status() int { return c.entry().status }

// Exit is the exit code of the command line.
func (c Code) Exit() int { return c.entry().exit }

// Sentence says what happened, for people.
func (c Code) Sentence() string { return c.entry().sentence }

// Hint says what to do next.
func (c Code) Hint() string { return c.entry().hint }

// Codes lists every code, in the order of the table.
func Codes() []Code {
	codes := make([]Code, len(table))
	for i, e := range table {
		codes[i] = e.code
	}
	return codes
}
