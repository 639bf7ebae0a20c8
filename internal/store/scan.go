package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// scanLines calls fn with every line of r that is JSON and counts the others.
// Bytes after the last line break are no line.
func scanLines(r io.Reader, fn func(line []byte) error) (damaged int, err error) {
	return scanLinesAnd(r, fn, nil)
}

// scanLinesAnd also calls bad with those that are not JSON, if they are no longer
// than any line.
func scanLinesAnd(r io.Reader, fn func(line []byte) error, bad func(line []byte)) (damaged int, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var long []byte // a line that did not fit the reader's buffer, so far
	endless := false
	for {
		part, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(long)+len(part) > longestLine {
				endless, long = true, nil // none of ours, and nobody has room for it
			}
			if !endless {
				long = append(long, part...)
			}
			continue
		}
		if errors.Is(err, io.EOF) {
			return damaged, nil
		}
		if err != nil {
			return damaged, err
		}
		if endless {
			endless = false
			damaged++
			continue
		}
		line := part
		if len(long) > 0 {
			line = append(long, part...)
			long = nil
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		if !json.Valid(line) {
			damaged++
			if bad != nil {
				bad(line)
			}
			continue
		}
		if err := fn(line); err != nil {
			return damaged, err
		}
	}
}
