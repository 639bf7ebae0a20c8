// Package tapin_test holds the house's floor plan: which room may know which.
// It owns the table of layers below, the same as in docs/ARCHITECTURE.md.
// It must never grow an exception for a room; a room that does not fit is moved.
package tapin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "tapin"

// layer is a floor of the house. A room may use rooms on lower floors, and on
// its own floor only if the floor says so.
type layer struct {
	name     string
	siblings bool // whether rooms of this floor may use each other
	rooms    []string
}

// floors lists every room, lowest floor first. A room with /... stands for all
// rooms under it too.
var floors = []layer{
	{"web", false, []string{"web/...", "skills/...", "scripts"}},
	{"ground", true, []string{
		"internal/fault", "internal/secret", "internal/money", "internal/site", "internal/origin", "internal/wide",
		"internal/event/...", "internal/store/...", "internal/vault/...", "internal/config", "internal/trouble", "internal/guard", "internal/layout", "internal/testwait", "internal/backup", "internal/forget",
	}},
	{"contract", true, []string{"internal/api/..."}},
	{"engine", true, []string{"internal/egress/...", "internal/cdp/...", "internal/page/...", "internal/browser/..."}},
	{"conduct", false, []string{
		"internal/session", "internal/handoff", "internal/approval", "internal/taskrun",
		"internal/logins", "internal/oneshot", "internal/link", "internal/reach",
		"internal/owners", "internal/inbox", "internal/insight",
	}},
	{"doors", false, []string{
		"internal/apiserver", "internal/mcpserver", "internal/liveview", "internal/console", "internal/chat/...",
	}},
	{"roots", false, []string{"internal/daemon", "internal/sidecar", "internal/demo"}},
	{"cli", false, []string{"internal/cli"}},
	{"cmd", false, []string{"cmd/tapin"}},
	{"bench", true, []string{"bench/..."}},
	{"scripts", false, []string{"scripts/licenses", "scripts/terminal", "scripts/verify/echo"}},
}

// rule keeps a package, and what is under it, to the rooms named.
type rule struct {
	pkg  string
	only []string
	why  string
}

var rules = []rule{
	{"tapin/internal/cdp", []string{"internal/cdp/...", "internal/page/...", "internal/browser/..."}, "only the engine speaks CDP"},
	{"github.com/chromedp/cdproto", []string{"internal/cdp/...", "internal/page/...", "internal/browser/..."}, "only the engine speaks CDP"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"internal/mcpserver"}, "the MCP SDK is one door's business"},
	{"github.com/go-telegram/bot", []string{"internal/chat/telegram"}, "the Bot API is one door's business"},
	{"github.com/nats-io", []string{"internal/fleet"}, "one node must not need a message broker"},
	{"tapin/internal/chat/telegram", []string{"internal/chat/telegram", "internal/daemon"}, "only the daemon talks to Telegram"},
	{"tapin/internal/cli", []string{"internal/cli", "cmd/tapin"}, "the command line is the top"},
	{"testing", []string{"internal/browser/browsertest", "internal/testwait"}, "the product does not carry the test framework"},
	{"tapin/internal/testwait", []string{"internal/browser/browsertest"}, "it is how tests wait"},
}

// room is what go list tells about one package.
type room struct {
	ImportPath string
	Imports    []string // of the product; tests may look anywhere
}

func TestRoomsKnowOnlyWhatTheyMay(t *testing.T) {
	t.Parallel()
	rooms, err := listRooms(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(rooms) == 0 {
		t.Fatal("go list names no packages")
	}
	for _, v := range violations(rooms) {
		t.Error(v)
	}
}

func TestTheFloorPlanCatchesViolations(t *testing.T) {
	t.Parallel()
	in := func(path string, imports ...string) room { return room{"tapin/" + path, imports} }
	for name, tt := range map[string]struct {
		rooms []room
		want  string
	}{
		"a room that is on no floor":        {[]room{in("internal/shed")}, "internal/shed is on no floor"},
		"a folder under a single room":      {[]room{in("internal/session/helper")}, "internal/session/helper is on no floor"},
		"a look upwards":                    {[]room{in("internal/store", "tapin/internal/session")}, "internal/store (ground) imports internal/session (conduct)"},
		"a look at a sibling":               {[]room{in("internal/session", "tapin/internal/handoff")}, "internal/session imports its sibling internal/handoff"},
		"a door into another door":          {[]room{in("internal/console", "tapin/internal/liveview")}, "internal/console imports its sibling internal/liveview"},
		"conduct that speaks CDP":           {[]room{in("internal/session", "tapin/internal/cdp")}, "only the engine speaks CDP"},
		"a door with the protocol's types":  {[]room{in("internal/liveview", "github.com/chromedp/cdproto/page")}, "only the engine speaks CDP"},
		"the MCP SDK elsewhere":             {[]room{in("internal/apiserver", "github.com/modelcontextprotocol/go-sdk/mcp")}, "the MCP SDK is one door's business"},
		"Telegram in the sidecar":           {[]room{in("internal/sidecar", "tapin/internal/chat/telegram")}, "only the daemon talks to Telegram"},
		"the daemon in the engine":          {[]room{in("internal/daemon", "tapin/internal/page")}, "internal/daemon reaches the engine: internal/daemon → internal/page"},
		"the daemon in the engine by a way": {[]room{in("internal/daemon", "tapin/internal/chat"), in("internal/chat", "tapin/internal/session"), in("internal/session", "tapin/internal/browser/local")}, "internal/daemon → internal/chat → internal/session → internal/browser/local"},
		"the contract on the engine":        {[]room{in("internal/api", "tapin/internal/page")}, "internal/api (contract) imports internal/page (engine)"},
		"the test framework in the product": {[]room{in("internal/page", "testing")}, "the product does not carry the test framework"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := violations(tt.rooms)
			if !slices.ContainsFunc(got, func(v string) bool { return strings.Contains(v, tt.want) }) {
				t.Errorf("got %q, want %q among them", got, tt.want)
			}
		})
	}
	allowed := []room{
		in("internal/config", "tapin/internal/fault", "fmt"),
		in("internal/page", "tapin/internal/cdp", "github.com/chromedp/cdproto/page"),
		in("internal/browser/local", "tapin/internal/egress", "tapin/internal/browser"),
		in("internal/chat/telegram", "tapin/internal/chat"),
		in("internal/daemon", "tapin/internal/api", "tapin/internal/chat/telegram"),
		in("internal/cli", "tapin/internal/daemon", "tapin/internal/sidecar"),
		in("cmd/tapin", "tapin/internal/cli"),
	}
	if got := violations(allowed); len(got) != 0 {
		t.Errorf("what is allowed was refused: %q", got)
	}
}

// violations says in sentences what the rooms know that they must not.
func violations(rooms []room) []string {
	var found []string
	imports := map[string][]string{}
	for _, r := range rooms {
		name := inside(r.ImportPath)
		floor := floorOf(name)
		if floor < 0 {
			found = append(found, name+" is on no floor: give it a place in the table of imports_test.go and in docs/ARCHITECTURE.md")
			continue
		}
		for _, path := range r.Imports {
			for _, u := range rules {
				if (path == u.pkg || strings.HasPrefix(path, u.pkg+"/")) && !named(name, u.only) {
					found = append(found, fmt.Sprintf("%s must not import %s: %s", name, path, u.why))
				}
			}
			if path != module && !strings.HasPrefix(path, module+"/") {
				continue
			}
			other := inside(path)
			imports[name] = append(imports[name], other)
			switch below := floorOf(other); {
			case below > floor:
				found = append(found, fmt.Sprintf("%s (%s) imports %s (%s): imports point down only", name, floors[floor].name, other, floors[below].name))
			case below == floor && !floors[floor].siblings && !family(name, other):
				found = append(found, fmt.Sprintf("%s imports its sibling %s: on the floor %q rooms do not know each other; let the root wire them", name, other, floors[floor].name))
			}
		}
	}
	if way := wayTo("internal/daemon", "engine", imports, nil); way != nil {
		found = append(found, "internal/daemon reaches the engine: "+strings.Join(way, " → ")+"; it speaks api.Client only")
	}
	return found
}

// wayTo finds a chain of imports from a room to a floor.
func wayTo(from, floor string, imports map[string][]string, behind []string) []string {
	way := append(slices.Clone(behind), from)
	if i := floorOf(from); i >= 0 && floors[i].name == floor {
		return way
	}
	for _, next := range imports[from] {
		if slices.Contains(way, next) {
			continue
		}
		if found := wayTo(next, floor, imports, way); found != nil {
			return found
		}
	}
	return nil
}

func inside(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

func floorOf(name string) int {
	return slices.IndexFunc(floors, func(l layer) bool { return named(name, l.rooms) })
}

// named reports whether a list of rooms has this one.
func named(name string, rooms []string) bool {
	return slices.ContainsFunc(rooms, func(r string) bool {
		base, deep := strings.CutSuffix(r, "/...")
		return name == base || deep && strings.HasPrefix(name, base+"/")
	})
}

// family reports whether one room is inside the other.
func family(a, b string) bool {
	return strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// touchSources looks at every source file. go list runs as another process,
// and go test would hand out an old result from its cache unless this one has
// itself looked at what the result depends on.
func touchSources() error {
	return filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "bin" || path == "tools" || d.Name() == "node_modules" || len(path) > 1 && path[0] == '.'):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			_, err = os.Stat(path)
		}
		return err
	})
}

func listRooms(t *testing.T) ([]room, error) {
	t.Helper()
	if err := touchSources(); err != nil {
		return nil, err
	}
	// -e: a room that does not compile is the compiler's to report, not ours.
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "./...")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list: %w", err)
	}
	var rooms []room
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var r room
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return rooms, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		if r.ImportPath != module { // this folder itself: it holds this test alone
			rooms = append(rooms, r)
		}
	}
}
