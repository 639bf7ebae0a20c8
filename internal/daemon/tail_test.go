package daemon

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestATailReadsBothLogsInOrderAndGoesOnOverRotations(t *testing.T) {
	t.Parallel()
	home := openHome(t)
	tail := OpenTail(home)
	defer tail.Close()
	if lines, err := tail.Read(); err != nil || len(lines) > 0 {
		t.Fatalf("of nothing it read %v, %v", lines, err)
	}
	// Each file takes about two lines.
	logs := map[string]*Log{}
	for _, part := range []string{"daemon", "sidecar"} {
		log, err := OpenLog(home, part+".log", &LogOptions{MaxBytes: 120, Files: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		logs[part] = log
	}
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	n := 0
	write := func(part, what string) {
		n++
		if _, err := fmt.Fprintf(logs[part], "time=%s level=INFO msg=%s\n", start.Add(time.Duration(n)*time.Second).Format(time.RFC3339Nano), what); err != nil {
			t.Fatal(err)
		}
	}
	read := func(from *Tail) (got []string) {
		lines, err := from.Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			got = append(got, l.Part+" "+l.Text[len(l.Text)-1:])
		}
		return got
	}
	write("daemon", "1")
	write("sidecar", "2")
	write("daemon", "3")
	if diff := cmp.Diff([]string{"daemon 1", "sidecar 2", "daemon 3"}, read(tail)); diff != "" {
		t.Fatal(diff)
	}
	write("daemon", "4") // in the next file
	write("sidecar", "5")
	if _, err := logs["sidecar"].Write([]byte("goroutine 1 [running]: 6\nhalf a li")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"daemon 4", "sidecar 5", "sidecar 6"}, read(tail)); diff != "" {
		t.Fatal(diff)
	}
	if got := read(tail); got != nil {
		t.Fatalf("read again: %v", got)
	}
	late := OpenTail(home)
	defer late.Close()
	want := []string{"daemon 1", "sidecar 2", "daemon 3", "daemon 4", "sidecar 5", "sidecar 6"}
	if diff := cmp.Diff(want, read(late)); diff != "" {
		t.Fatal(diff)
	}
}
