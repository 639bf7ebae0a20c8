package wide

import (
	"bytes"
	"os"
	"runtime"
	"testing"

	"tapin/internal/testwait"
)

func TestAPictureIsWrittenBeforeAnybodyReads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only there it can be asked for")
	}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close()
	Pipe(to)
	if err := to.SetWriteDeadline(testwait.End()); err != nil {
		t.Fatal(err)
	}
	if n, err := to.Write(make([]byte, 512<<10)); err != nil {
		t.Errorf("after %d bytes: %v", n, err)
	}
}

func TestWhatIsNoPipeStaysAsItIs(t *testing.T) {
	Pipe(new(bytes.Buffer))
	file, err := os.CreateTemp(t.TempDir(), "file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	Pipe(file)
}
