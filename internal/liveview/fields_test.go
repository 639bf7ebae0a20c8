package liveview_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"tapin/internal/browser/browsertest"
	"tapin/internal/link"
)

// field waits for one by its label.
func (p *phone) field(label string) map[string]any {
	p.t.Helper()
	var found map[string]any
	p.until("the field "+label, func() bool {
		for i := len(p.words) - 1; i >= 0; i-- {
			if p.words[i]["t"] != "fields" {
				continue
			}
			for _, f := range p.words[i]["fields"].([]any) {
				if f.(map[string]any)["label"] == label {
					found = f.(map[string]any)
					return true
				}
			}
			return false
		}
		return false
	})
	return found
}

// edits is a stand-in that becomes each of the values, one message after the
// other without waiting, as fast fingers do.
func (p *phone) edits(ctx context.Context, handoff, id, base string, values ...string) map[string]any {
	p.t.Helper()
	from := p.heard()
	for i, v := range values {
		p.send(ctx, map[string]any{"t": "edit", "h": handoff, "id": id, "base": base, "value": v, "selection": []int{len(utf16.Encode([]rune(v)))}, "seq": i})
		base = v
	}
	return p.word("caret", from, func(m map[string]any) bool { return m["seq"] == float64(len(values)-1) })
}

func growing(text string) (out []string) {
	for i := range text {
		if i > 0 {
			out = append(out, text[:i])
		}
	}
	return append(out, text)
}

func TestFastTypingThroughTheSocketArrivesExactly(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": `<!doctype html><title>t</title><body>
<input id=plain aria-label=plain><input id=mask aria-label=mask><input id=pass aria-label=pass type=password>
<div id=rich aria-label=rich contenteditable style="border:1px solid;min-height:20px"></div>
<iframe src="OTHER/inner" style="width:300px;height:60px"></iframe>
<script>mask.oninput = () => { mask.value = mask.value.replace(/\D/g, '').replace(/(.{4})(?=.)/g, '$1 ') }</script>`,
		"/inner": `<!doctype html><input aria-label=inner>`}, nil)
	h.lend("hof_1")
	p, watcher := h.enter(ctx, link.Drive), h.enter(ctx, link.Watch)
	for i, label := range []string{"plain", "rich", "inner"} {
		id := p.field(label)["id"].(string)
		from := p.heard()
		p.send(ctx, map[string]any{"t": "focus", "h": "hof_1", "id": id, "n": i})
		p.word("reached", from, func(m map[string]any) bool { return m["n"] == float64(i) })
		for _, text := range []string{"Grüße aus Zürich", "مرحبا بالعالم", "👍🏽👨‍👩‍👧 ok", "你好，世界"} {
			if got := p.edits(ctx, "hof_1", id, "", growing(text)...); got["value"] != text || got["same"] != true {
				t.Errorf("%s in %s became %v", text, label, got)
			}
			if got := p.edits(ctx, "hof_1", id, text, ""); got["value"] != "" {
				t.Errorf("emptied, %s holds %v", label, got)
			}
		}
		// Twenty backspaces in a row, none of them waited for.
		all := growing(strings.Repeat("x", 30))
		var back []string
		for i := 28; i >= 9; i-- {
			back = append(back, all[i])
		}
		p.edits(ctx, "hof_1", id, "", all...)
		if got := p.edits(ctx, "hof_1", id, all[29], back...); got["value"] != strings.Repeat("x", 10) {
			t.Errorf("after twenty backspaces %s holds %v", label, got)
		}
	}
	// The base of each message is what the finger saw, not what the mask made of it.
	if got := p.edits(ctx, "hof_1", p.field("mask")["id"].(string), "", growing("4242424212")...); got["value"] != "4242 4242 12" {
		t.Errorf("the mask holds %v", got)
	}
	got := p.edits(ctx, "hof_1", p.field("pass")["id"].(string), "", growing("hunter2")...)
	if got["value"] != nil || got["masked"] != true || got["length"] != float64(7) || got["same"] != true {
		t.Errorf("of the password is told %v", got)
	}
	if now := h.eval(ctx, `pass.value`); now != "hunter2" {
		t.Errorf("the password is %q", now)
	}
	for _, m := range watcher.said() {
		if m["t"] == "fields" || m["t"] == "caret" {
			t.Fatal("who only watches is told what stands in fields")
		}
	}
	raw, _ := json.Marshal(p.said())
	if strings.Contains(string(raw), "hunter2") {
		t.Error("the password came back")
	}
}

func TestFilesGoBothWays(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	h := open(ctx, t, map[string]string{"/": `<!doctype html><title>t</title><input id=f aria-label=files type=file><button id=b style="position:absolute;left:0;top:100px;width:200px;height:50px">choose</button>
<script>b.onclick = () => { const i = document.createElement('input'); i.type = 'file'; i.onchange = () => { document.title = i.files[0].name }; i.click() }</script>`}, nil)
	h.lend("hof_1")
	l, token := h.mint(link.Drive)
	_, _, cookie := h.claim(ctx, l.ID, token)
	p := h.phone(ctx, l.ID, cookie, nil)
	send := func(query, name, content string, with *http.Cookie) int {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, content)
		_ = form.Close()
		answer := h.request(ctx, http.MethodPost, "/live/"+l.ID+"/upload?"+query, body.String(), func(r *http.Request) {
			r.Header.Set("Content-Type", form.FormDataContentType())
			if with != nil {
				r.AddCookie(with)
			}
		})
		return answer.StatusCode
	}
	field := p.field("files")["id"].(string)
	for name, tt := range map[string]struct {
		query string
		with  *http.Cookie
		want  int
	}{
		"no credential":      {"h=hof_1&field=" + field, nil, 401},
		"another hand-off":   {"h=hof_0&field=" + field, cookie, 409},
		"no such field":      {"h=hof_1&field=1.2", cookie, 409},
		"no chooser is open": {"h=hof_1", cookie, 404},
	} {
		if got := send(tt.query, "a.txt", "hello", tt.with); got != tt.want {
			t.Errorf("%s: %d", name, got)
		}
	}
	left := func() (n int) {
		_ = filepath.WalkDir(filepath.Join(h.dir, "uploads"), func(_ string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				n++
			}
			return nil
		})
		return n
	}
	if n := left(); n != 0 {
		t.Errorf("%d files of refused uploads are left", n)
	}
	if got := send("h=hof_1&field="+field, `..\../../etc/p<ass>wd.txt`, "hello", cookie); got != 200 {
		t.Fatalf("upload: %d", got)
	}
	if got := h.eval(ctx, `f.files[0].text().then(text => f.files[0].name + ' ' + text)`); got != "p_ass_wd.txt hello" {
		t.Errorf("the page has %q", got)
	}
	p.tap(ctx, "hof_1", 50, 120)
	p.state("the page asks for a file", func(s map[string]any) bool {
		for _, q := range s["questions"].([]any) {
			if q.(map[string]any)["kind"] == "file_chooser" {
				return true
			}
		}
		return false
	})
	if got := send("h=hof_1", "chosen.txt", "x", cookie); got != 200 {
		t.Errorf("the chooser's answer: %d", got)
	}
	p.state("the page took it", func(s map[string]any) bool { return s["page"].(map[string]any)["title"] == "chosen.txt" })
	if n := left(); n != 2 {
		t.Errorf("%d files are kept", n)
	}
	if err := h.door.Sweep([]string{session}); err != nil || left() != 2 {
		t.Errorf("a sweep took what a session still needs: %v", err)
	}
	if err := h.door.Forget(session); err != nil || left() != 0 {
		t.Errorf("what was uploaded outlives its session: %v", err)
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b"} {
		if h.door.Forget(name) == nil {
			t.Errorf("forgot %q", name)
		}
	}
	if answer := h.request(ctx, http.MethodGet, "/live/"+l.ID+"/download/none", "", func(r *http.Request) { r.AddCookie(cookie) }); answer.StatusCode != 404 {
		t.Errorf("a file that is not there: %d", answer.StatusCode)
	}
}
