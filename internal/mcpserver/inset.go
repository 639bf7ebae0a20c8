package mcpserver

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// insets keep what is long out of an answer until the answer is written: the SDK
// goes over everything three times on the way, which takes longer than a picture.
// What stands in its place is a random word that no page has ever seen.
type insets struct {
	out io.Writer

	mu      sync.Mutex
	waiting map[string]inset // by the word in its place, in quotes
}

// inset is a JSON value, and until when somebody may write the answer that it is in.
type inset struct {
	value []byte
	until time.Time
}

// insetFor is far longer than a host takes to read an answer.
const insetFor = 10 * time.Minute

// insetBytes is what is not worth the detour.
const insetBytes = 2 << 10

func newInsets(out io.Writer) *insets { return &insets{out: out, waiting: map[string]inset{}} }

// take takes what is long out of an answer. A nil one leaves everything where it is.
func (in *insets) take(result *mcp.CallToolResult) {
	if in == nil {
		return
	}
	for _, content := range result.Content {
		switch c := content.(type) {
		case *mcp.TextContent:
			if len(c.Text) < insetBytes {
				continue
			}
			if value, err := quote(c.Text); err == nil {
				c.Text = base64.StdEncoding.EncodeToString(in.keep(value))
			}
		case *mcp.ImageContent:
			value := append(make([]byte, 0, base64.StdEncoding.EncodedLen(len(c.Data))+2), '"')
			value = append(base64.StdEncoding.AppendEncode(value, c.Data), '"')
			c.Data = in.keep(value) // which the SDK encodes
		}
	}
	if raw, ok := result.StructuredContent.(json.RawMessage); ok && len(raw) >= insetBytes {
		result.StructuredContent = base64.StdEncoding.EncodeToString(in.keep(raw))
	}
}

// quote is a text as JSON.
func quote(text string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(text)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// keep keeps a value and gives what stands for it, to be encoded.
func (in *insets) keep(value []byte) []byte {
	word := make([]byte, 24)
	_, _ = rand.Read(word) // never fails
	now := time.Now()
	in.mu.Lock()
	defer in.mu.Unlock()
	for old, kept := range in.waiting {
		if now.After(kept.until) {
			delete(in.waiting, old) // its call was given up
		}
	}
	in.waiting[`"`+base64.StdEncoding.EncodeToString(word)+`"`] = inset{value, now.Add(insetFor)}
	return word
}

// Write writes a message with everything in its place.
func (in *insets) Write(message []byte) (int, error) {
	whole := message
	in.mu.Lock()
	for word, kept := range in.waiting {
		if before, after, found := bytes.Cut(whole, []byte(word)); found {
			delete(in.waiting, word)
			whole = bytes.Join([][]byte{before, after}, kept.value)
		}
	}
	in.mu.Unlock()
	if _, err := in.out.Write(whole); err != nil {
		return 0, err
	}
	return len(message), nil
}

// Close leaves the stream open for whoever owns it.
func (in *insets) Close() error { return nil }
