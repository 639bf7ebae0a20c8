package store

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tapin/internal/testwait"
)

// writerHome, when set, makes the test binary a writer that is to be killed.
const writerHome = "TAPIN_STORE_WRITER"

// writerDiesAt is the step at which it ends itself, if at any.
const writerDiesAt = "TAPIN_STORE_WRITER_DIES_AT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerHome); dir != "" {
		if err := writeForever(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	testwait.Draws("30")
	os.Exit(m.Run())
}

type record struct {
	N   uint64 `json:"n"`
	Pad string `json:"pad"`
	Sum uint32 `json:"sum"`
}

func newRecord(n uint64) record {
	pad := strings.Repeat(strconv.FormatUint(n, 36), int(n%5000)+1)
	return record{n, pad, crc32.ChecksumIEEE([]byte(pad))}
}

func (r record) whole() bool { return r == newRecord(r.N) }

// writeForever writes everything the store can write. It prints each number
// once it is acknowledged.
func writeForever(dir string) error {
	change, step, _ := strings.Cut(os.Getenv(writerDiesAt), "|")
	came := 0
	h, err := Open(dir, &Options{Step: func(c string, s Step) {
		if step == "" || s != Step(step) || !strings.HasPrefix(c, change) {
			return
		}
		if came++; came == 2 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	if err != nil {
		return err
	}
	log, err := h.OpenLog("log.jsonl", nil)
	if err != nil {
		return err
	}
	for {
		n, err := h.Counter("n")
		if err != nil {
			return err
		}
		line, err := json.Marshal(newRecord(n))
		if err != nil {
			return err
		}
		if err := h.Write(fmt.Sprintf("records/%d.json", n%3), line); err != nil {
			return err
		}
		if err := log.Append(line); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func TestAKillAtAnyMomentLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	rounds := 20
	if s := os.Getenv("TAPIN_CHAOS"); s != "" {
		n, err := strconv.Atoi(s)
		must(t, err)
		rounds = max(rounds, n)
	}
	dir := t.TempDir()
	acked := uint64(0)
	for range rounds {
		acked = killWriter(t, dir, acked)
		checkAfterKill(t, dir, acked)
	}
}

// killWriter runs a writer until it has acknowledged something new, kills it
// a random moment later and returns the last number it acknowledged.
func killWriter(t *testing.T, dir string, acked uint64) uint64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerHome+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for first := true; lines.Scan(); first = false {
		n, err := strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil || n <= acked {
			t.Errorf("acknowledged %q after %d: %v", lines.Text(), acked, err)
		}
		acked = max(acked, n)
		if first {
			time.AfterFunc(rand.N(20*time.Millisecond), func() { _ = cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the writer was not killed but ended: %v", err)
	}
	return acked
}

func checkAfterKill(t *testing.T, dir string, acked uint64) {
	t.Helper()
	h, err := Open(dir, nil)
	must(t, err)
	defer h.Close()
	if _, held, err := h.LockHolder("counter-n"); held || err != nil {
		t.Errorf("the dead still hold a lock: %v", err)
	}
	if left, err := h.List("tmp"); err != nil || len(left) != 0 {
		t.Errorf("temp files are left: %v, %v", left, err)
	}
	names, err := h.List("records")
	must(t, err)
	newest := uint64(0)
	for _, name := range names {
		var r record
		must(t, h.ReadJSON("records/"+name, &r))
		if !r.whole() {
			t.Errorf("%s is not whole", name)
		}
		newest = max(newest, r.N)
	}
	if newest < acked {
		t.Errorf("record %d was acknowledged, %d is the newest", acked, newest)
	}

	l, err := h.OpenLog("log.jsonl", nil)
	must(t, err)
	defer l.Close()
	data, err := h.Read("log.jsonl")
	must(t, err)
	last, count := uint64(0), 0
	must(t, l.Scan(func(line []byte) error {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		if !r.whole() || r.N <= last {
			return fmt.Errorf("line %d after %d is not whole", r.N, last)
		}
		last = r.N
		count++
		return nil
	}))
	if want := strings.Count(string(data), "\n"); count != want || last < acked || !strings.HasSuffix(string(data), "\n") {
		t.Errorf("%d whole lines of %d, the last is %d, acknowledged was %d", count, want, last, acked)
	}
}

// TestAKillAtEachStepLosesNothingThatWasAcknowledged is the same, at each
// instant in turn at which the files can be left.
func TestAKillAtEachStepLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	dir, acked := t.TempDir(), uint64(0)
	for _, change := range []string{"write counters/n", "write records/", "append to log.jsonl"} {
		for _, step := range Steps() {
			if step == Removed || strings.HasPrefix(change, "append") && (step == Named || step == FolderKept) {
				continue
			}
			acked = dieAt(t, dir, acked, change+"|"+string(step))
			checkAfterKill(t, dir, acked)
		}
	}
}

// dieAt runs a writer that ends itself at a step, the second time it comes there.
func dieAt(t *testing.T, dir string, acked uint64, at string) uint64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerHome+"="+dir, writerDiesAt+"="+at)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("%s: the writer was not killed but ended: %v", at, err)
	}
	for line := range strings.Lines(string(out)) {
		n, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
		if err != nil || n <= acked {
			t.Errorf("acknowledged %q after %d: %v", line, acked, err)
		}
		acked = max(acked, n)
	}
	return acked
}
