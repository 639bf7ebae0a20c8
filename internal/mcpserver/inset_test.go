package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What is long goes past the SDK and arrives as if it had not.
func TestWhatIsLongArrivesInItsPlace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var pen sync.Mutex // as the transport has one
	in := newInsets(&out)
	made := func(i int) *mcp.CallToolResult {
		long := strings.Repeat(fmt.Sprintf("%d <b>\"quoted\"</b>\n\u2028 Zoë \\ \x01", i), 400)
		return &mcp.CallToolResult{
			Content: []mcp.Content{
				&mcp.TextContent{Text: long},
				&mcp.TextContent{Text: "short"},
				&mcp.ImageContent{Data: bytes.Repeat([]byte{byte(i), 0xff}, 9000), MIMEType: "image/png"},
				&mcp.ImageContent{Data: bytes.Repeat([]byte{0xfe, byte(i)}, 9000), MIMEType: "image/jpeg"},
			},
			StructuredContent: json.RawMessage(fmt.Sprintf(`{"ok":true,"n":%d,"text":%q}`, i, strings.Repeat("x", 5000))),
		}
	}
	write := func(result *mcp.CallToolResult) []byte {
		raw, err := json.Marshal(result)
		if err != nil {
			t.Error(err)
		}
		pen.Lock()
		defer pen.Unlock()
		out.Reset()
		if n, err := in.Write(append(raw, '\n')); err != nil || n != len(raw)+1 {
			t.Errorf("%d of %d bytes were written, %v", n, len(raw)+1, err)
		}
		return bytes.Clone(out.Bytes())
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			want, sent := made(i), made(i)
			in.take(sent)
			if raw, _ := json.Marshal(sent); len(raw) > 1000 {
				t.Errorf("%d bytes went through the SDK", len(raw))
			}
			var got mcp.CallToolResult
			line := write(sent)
			if err := json.Unmarshal(line, &got); err != nil || bytes.Count(line, []byte("\n")) != 1 {
				t.Errorf("no line of JSON: %v", err)
				return
			}
			var data any
			_ = json.Unmarshal(want.StructuredContent.(json.RawMessage), &data)
			if !reflect.DeepEqual(got.Content, want.Content) || !reflect.DeepEqual(got.StructuredContent, data) {
				t.Errorf("%d arrived as something else", i)
			}
		})
	}
	all.Wait()
	if len(in.waiting) != 0 {
		t.Errorf("%d are still kept", len(in.waiting))
	}
	// Nobody writes the answer to a call that was given up.
	in.take(made(1))
	for word, kept := range in.waiting {
		kept.until = kept.until.Add(-2 * insetFor)
		in.waiting[word] = kept
	}
	write(func() *mcp.CallToolResult { r := made(2); in.take(r); return r }())
	if len(in.waiting) != 0 {
		t.Errorf("%d of a call that was given up are still kept", len(in.waiting))
	}
	var none *insets
	same := made(3)
	none.take(same)
	if !reflect.DeepEqual(same.Content, made(3).Content) {
		t.Error("where nothing is written as a line, something was taken out")
	}
}
