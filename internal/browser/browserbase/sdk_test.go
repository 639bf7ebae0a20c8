package browserbase_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser/browserbase/standin"
)

// TestTheOfficialSDKKnowsTheStandIn runs where make verify-browserbase has put
// the SDK: it needs Node, npm and their registry.
func TestTheOfficialSDKKnowsTheStandIn(t *testing.T) {
	dir := os.Getenv("TAPIN_VERIFY_BROWSERBASE")
	if dir == "" {
		t.Skip("make verify-browserbase runs this one")
	}
	s, err := standin.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	node := exec.CommandContext(t.Context(), "node", "--experimental-websocket", "sdk.mjs")
	node.Dir, node.WaitDelay = dir, 5*time.Second
	node.Env = append(os.Environ(), "BROWSERBASE_API_KEY="+s.Key(), "BROWSERBASE_PROJECT_ID="+s.Project(), "BROWSERBASE_BASE_URL="+s.URL())
	out, err := node.CombinedOutput()
	t.Logf("\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(out), "sdk: "); n != 11 {
		t.Errorf("%d calls were made", n)
	}
	for _, wrong := range s.Wrong() {
		t.Errorf("the stand-in finds the SDK wrong: %s", wrong)
	}
}
