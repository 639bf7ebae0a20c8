package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/browser/local"
	"tapin/internal/page"
)

// An owner is a process of its own that connects to a browser and works in it
// until it is killed: what the sidecar is to its browsers.
const ownerArg = "owner"

type ownerJob struct {
	Run   string
	Epoch uint64
	Ref   browser.Ref
}

// beOwner is the owner's main. It says what it did, a line each.
func beOwner() {
	var job ownerJob
	if err := json.NewDecoder(os.Stdin).Decode(&job); err != nil {
		os.Exit(2)
	}
	ctx := context.Background()
	inst, err := local.New(job.Run, job.Epoch, nil).Reconnect(ctx, job.Ref)
	if err != nil {
		fmt.Println("refused")
		os.Exit(0)
	}
	tabs, err := page.Open(ctx, inst, &page.Options{Look: chaosLook})
	if err != nil {
		fmt.Println("lost")
		os.Exit(0)
	}
	fmt.Println("ready")
	for {
		tab, err := tabs.Front(ctx)
		if err != nil {
			fmt.Println("lost")
			os.Exit(0)
		}
		// What an agent does all day. While a dialog is open it is refused, which is work too.
		_, _ = tab.Screenshot(ctx, page.ShotOptions{Format: page.JPEG})
		_, err = tab.Here(ctx)
		if inst.Conn().Err() != nil {
			fmt.Println("lost")
			os.Exit(0)
		}
		if err == nil {
			// A trace in the page, so that an owner that should be locked out is seen.
			_, _ = tab.Navigate(ctx, chaosTrace(job.Epoch), page.WaitCommit)
		}
	}
}

// chaosTrace moves within the document: nothing reloads.
func chaosTrace(epoch uint64) string {
	return os.Getenv("TAPIN_TEST_PAGE") + "#epoch-" + strconv.FormatUint(epoch, 10)
}

// owner starts one. Its lines come out of the returned reader.
func owner(t *testing.T, pageURL string, job ownerJob) (*exec.Cmd, *lines) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, ownerArg)
	cmd.Env = append(os.Environ(), "TAPIN_TEST_PAGE="+pageURL)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = in.Write(raw)
	_ = in.Close()
	return cmd, newLines(out)
}

// rounds is how often a chaos test does its thing: a few times in every run,
// as often as TAPIN_CHAOS says in make chaos.
func rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("TAPIN_CHAOS")); err == nil && n > 0 {
		return n
	}
	return few
}
