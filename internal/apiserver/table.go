package apiserver

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"tapin/internal/api"
)

// route is one row of the table: everything there is to know about a call.
type route struct {
	method string
	path   string
	who    Role
	doc    string
	query  reflect.Type
	body   reflect.Type // nil when the route takes none
	answer reflect.Type // nil when the answer is not JSON of ours
	media  []string     // what the answer is then
	stream bool         // stays open, so it holds no slot
	keyed  bool         // honours Idempotency-Key
	most   int64        // bytes of a body, where that is more than usual
	serve  func(*Server, *call) error
}

// routes is the table. A further route is one row here and one handler.
// Rows under /sessions/{id}/ also answer as /session/, for the active session.
func routes() []*route {
	return slices.Concat(
		sessionRoutes(),
		handoffRoutes(),
		approvalRoutes(),
		runRoutes(),
		linkRoutes(),
		consoleRoutes(),
		ownerRoutes(),
		browserRoutes(),
	)
}

func sessionRoutes() []*route {
	return []*route{
		get("/health", Anyone, "Tells whether the sidecar serves.", (*Server).health),
		raw("/openapi.json", Agent, "This description.", (*Server).describe, "application/json"),
		raw("/metrics", Agent, "Figures for Prometheus.", (*Server).figures, "text/plain"),
		stream("/events", Agent, "Follows the feed as server-sent events.", (*Server).events),

		get("/journal", Agent, "Tells what was done, by whom, and what came of it.", (*Server).journal),
		get("/usage", Agent, "Tells how many minutes of billed browsers this month came to.", (*Server).minutes),
		get("/analytics", Owner, "Tells how asking a person went: how long it took, how often it helped, and where.", (*Server).analysis),
		post("/cleanup", Agent, "Ends what sessions left behind; never a live one.", (*Server).cleanup),

		post("/session/start", Agent, "Opens a browser.", (*Server).start).withKey(),
		get("/sessions", Agent, "Lists all sessions.", (*Server).list),
		post("/sessions/{id}/stop", Agent, "Ends the session.", (*Server).stop),
		post("/sessions/{id}/navigate", Agent, "Opens an address.", (*Server).navigate),
		post("/sessions/{id}/back", Agent, "Goes one page back.", (*Server).back),
		post("/sessions/{id}/forward", Agent, "Goes one page forward.", (*Server).forward),
		post("/sessions/{id}/reload", Agent, "Loads the page again.", (*Server).reload),
		post("/sessions/{id}/click", Agent, "Clicks an element.", (*Server).click),
		post("/sessions/{id}/hover", Agent, "Moves the pointer over an element.", (*Server).hover),
		post("/sessions/{id}/drag", Agent, "Drags an element onto another.", (*Server).drag),
		post("/sessions/{id}/type", Agent, "Types a text into a field, or into the one with the focus.", (*Server).typing).withKey(),
		post("/sessions/{id}/fill", Agent, "Fills many fields.", (*Server).fill),
		post("/sessions/{id}/press", Agent, "Presses a key or a combination.", (*Server).press),
		post("/sessions/{id}/select", Agent, "Chooses options of a list.", (*Server).choose),
		post("/sessions/{id}/upload", Agent, "Gives files to a field.", (*Server).upload),
		post("/sessions/{id}/scroll", Agent, "Scrolls the page, or an element into view.", (*Server).scroll),
		post("/sessions/{id}/wait", Agent, "Waits until the page is as asked for.", (*Server).wait),
		post("/sessions/{id}/dialog", Agent, "Answers the dialog that is open.", (*Server).dialog),
		post("/sessions/{id}/permission", Agent, "Lets a site do something, or not.", (*Server).permission),
		post("/sessions/{id}/auth", Agent, "Answers a site that asks for a name and a password.", (*Server).auth),
		get("/sessions/{id}/downloads", Agent, "Lists the files that pages sent.", (*Server).downloads),
		get("/sessions/{id}/tabs", Agent, "Lists tabs and popups.", (*Server).tabs),
		post("/sessions/{id}/tab", Agent, "Brings a tab to the front, or closes it.", (*Server).tab),
		get("/sessions/{id}/snapshot", Agent, "Outlines the page, with refs to act on.", (*Server).snapshot),
		get("/sessions/{id}/text", Agent, "Tells what the page says.", (*Server).text),
		post("/sessions/{id}/extract", Agent, "Reads out what an instruction names.", (*Server).extract),
		raw("/sessions/{id}/screenshot", Agent, "Photographs the page.", (*Server).screenshot, "image/png", "image/jpeg", "image/webp"),
		get("/sessions/{id}/status", Agent, "Tells what the session shows and who drives it.", (*Server).status),

		get("/contexts", Agent, "Lists the saved logins.", (*Server).listContexts),
		get("/contexts/{name}", Agent, "Tells about a saved login.", (*Server).showContext),
		remove("/contexts/{name}", Agent, "Deletes a saved login; the agent may delete one whose last check failed.", (*Server).deleteContext),
		post("/contexts/{name}/rename", Owner, "Gives a saved login another name.", (*Server).renameContext),
		post("/contexts/{name}/check", Agent, "Finds out whether a saved login still works.", (*Server).checkContext),
		post("/contexts/{name}/export", Agent, "Puts a saved login into an envelope; in the clear for the owner alone.", (*Server).exportSaved),
		post("/contexts/{name}/import", Agent, "Takes an envelope into a saved login; the agent into a new one alone.", (*Server).importSaved).upTo(maxEnvelopeBody),
		post("/context/export", Agent, "Puts the login of a live session into an envelope.", (*Server).exportLive),
		post("/context/import", Agent, "Takes an envelope into a live session.", (*Server).importLive).upTo(maxEnvelopeBody),
	}
}

// nothing is the query or body of a route that takes none.
type nothing struct{}

// get is a row that answers a query with JSON.
func get[Q, A any](path string, who Role, doc string, handle func(*Server, *call, *Q) (*A, error)) *route {
	return &route{
		method: http.MethodGet, path: path, who: who, doc: doc,
		query: reflect.TypeFor[Q](), answer: reflect.TypeFor[A](),
		serve: func(s *Server, c *call) error {
			q := new(Q)
			if err := api.DecodeQuery(c.r.URL.RawQuery, q); err != nil {
				return err
			}
			answer, err := handle(s, c, q)
			if err != nil {
				return err
			}
			return c.answer(answer)
		},
	}
}

// post is a row that takes a JSON body and answers with JSON.
func post[B, A any](path string, who Role, doc string, handle func(*Server, *call, *B) (*A, error)) *route {
	return &route{
		method: http.MethodPost, path: path, who: who, doc: doc,
		query: reflect.TypeFor[nothing](), body: reflect.TypeFor[B](), answer: reflect.TypeFor[A](),
		serve: func(s *Server, c *call) error {
			if err := api.DecodeQuery(c.r.URL.RawQuery, new(nothing)); err != nil {
				return err
			}
			raw, err := c.body(max(s.options.MaxBody, c.row.most))
			if err != nil {
				return err
			}
			b := new(B)
			if err := api.Decode(raw, b); err != nil {
				return err
			}
			if whole, ok := any(b).(interface{ Check() error }); ok {
				if err := whole.Check(); err != nil {
					return err
				}
			}
			answer, err := handle(s, c, b)
			if err != nil {
				return err
			}
			return c.answer(answer)
		},
	}
}

// remove is a row that takes something away and says what.
func remove[A any](path string, who Role, doc string, handle func(*Server, *call) (*A, error)) *route {
	row := get(path, who, doc, func(s *Server, c *call, _ *nothing) (*A, error) { return handle(s, c) })
	row.method = http.MethodDelete
	return row
}

// raw is a row that writes its answer itself.
func raw[Q any](path string, who Role, doc string, handle func(*Server, *call, *Q) error, media ...string) *route {
	return &route{
		method: http.MethodGet, path: path, who: who, doc: doc,
		query: reflect.TypeFor[Q](), media: media,
		serve: func(s *Server, c *call) error {
			q := new(Q)
			if err := api.DecodeQuery(c.r.URL.RawQuery, q); err != nil {
				return err
			}
			return handle(s, c, q)
		},
	}
}

// stream is a row whose answer does not end by itself.
func stream[Q any](path string, who Role, doc string, handle func(*Server, *call, *Q) error) *route {
	row := raw(path, who, doc, handle, "text/event-stream")
	row.stream = true
	return row
}

// withKey says that the route's handler honours Idempotency-Key.
func (r *route) withKey() *route {
	r.keyed = true
	return r
}

// upTo allows a body of that many bytes.
func (r *route) upTo(most int64) *route {
	r.most = most
	return r
}

const (
	canonical = "/sessions/{id}/"
	shorthand = "/session/"
)

// paths are the spellings of the route's path, the canonical one first.
func (r *route) paths() []string {
	if rest, ok := strings.CutPrefix(r.path, canonical); ok {
		return []string{r.path, shorthand + rest}
	}
	return []string{r.path}
}

// label names the route in metrics and logs.
func (r *route) label() string { return r.method + " " + r.path }
