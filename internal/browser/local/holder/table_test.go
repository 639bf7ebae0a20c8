package holder

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// play feeds the table what a browser (←) and a client (→) say. A line that
// begins with … is said while nobody is connected.
func play(t *testing.T, lines ...string) *table {
	t.Helper()
	tb := newTable()
	for _, line := range lines {
		present := !strings.HasPrefix(line, "…")
		line = strings.TrimPrefix(line, "…")
		from, raw, _ := strings.Cut(line, " ")
		var e envelope
		if err := json.Unmarshal([]byte(raw), &e); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		switch {
		case from == "→" && watched[e.Method]:
			tb.fromClient(&e)
		case from == "←" && tracked[e.Method]:
			tb.fromBrowser(&e, []byte(raw), present)
		}
	}
	return tb
}

func attached(session, target string, waiting bool) string {
	return fmt.Sprintf(`← {"method":"Target.attachedToTarget","params":{"sessionId":"%s","targetInfo":{"targetId":"%s"},"waitingForDebugger":%v}}`, session, target, waiting)
}

const (
	dialog       = `← {"method":"Page.javascriptDialogOpening","params":{"message":"m"},"sessionId":"s1"}`
	dialogClosed = `← {"method":"Page.javascriptDialogClosed","params":{},"sessionId":"s1"}`
	paused       = `← {"method":"Fetch.requestPaused","params":{"requestId":"r1"},"sessionId":"s1"}`
	begun        = `← {"method":"Browser.downloadWillBegin","params":{"guid":"g1"}}`
	half         = `← {"method":"Browser.downloadProgress","params":{"guid":"g1","state":"inProgress"}}`
	done         = `← {"method":"Browser.downloadProgress","params":{"guid":"g1","state":"completed"}}`
	frame        = `← {"method":"Page.screencastFrame","params":{"data":"…","sessionId":7},"sessionId":"s1"}`
	chooser      = `← {"method":"Page.fileChooserOpened","params":{},"sessionId":"s1"}`
	crashed      = `← {"method":"Inspector.targetCrashed","params":{},"sessionId":"s1"}`
)

func TestTheTableTellsWhatIsSo(t *testing.T) {
	t.Parallel()
	page := attached("s1", "t1", false)
	waiting := attached("s2", "t2", true)
	ran := strings.Replace(waiting, "true", "false", 1)
	for name, tt := range map[string]struct {
		said []string
		want []string
	}{
		"a tab":                       {[]string{page}, []string{page}},
		"a tab that was closed":       {[]string{page, dialog, `← {"method":"Target.detachedFromTarget","params":{"sessionId":"s1"}}`}, nil},
		"an open dialog":              {[]string{page, dialog}, []string{page, dialog}},
		"an answered dialog":          {[]string{page, dialog, dialogClosed}, []string{page}},
		"a popup that waits":          {[]string{page, waiting}, []string{page, waiting}},
		"a popup that was let go":     {[]string{page, waiting, `→ {"id":5,"method":"Runtime.runIfWaitingForDebugger","sessionId":"s2"}`}, []string{page, ran}},
		"a paused request":            {[]string{page, paused}, []string{page, paused}},
		"a request that went on":      {[]string{page, paused, `→ {"id":5,"method":"Fetch.continueRequest","sessionId":"s1","params":{"requestId":"r1"}}`}, []string{page}},
		"interception switched off":   {[]string{page, paused, `→ {"id":5,"method":"Fetch.disable","sessionId":"s1"}`}, []string{page}},
		"a download under way":        {[]string{begun, half}, []string{begun, half}},
		"a download that was seen":    {[]string{begun, half, done}, nil},
		"a download nobody saw end":   {[]string{begun, "…" + done}, []string{begun, done}},
		"the last picture":            {[]string{page, frame, frame}, []string{page, frame}},
		"a cast that was stopped":     {[]string{page, frame, `→ {"id":5,"method":"Page.stopScreencast","sessionId":"s1"}`}, []string{page}},
		"a file chooser":              {[]string{page, chooser}, []string{page, chooser}},
		"a crash":                     {[]string{page, crashed}, []string{page, crashed}},
		"a crash that was reloaded":   {[]string{page, crashed, `→ {"id":5,"method":"Page.reload","sessionId":"s1"}`}, []string{page}},
		"a name that changed":         {[]string{`← {"method":"Target.targetInfoChanged","params":{"targetInfo":{"targetId":"t1","title":"new"}}}`}, []string{`← {"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"t1","title":"new"}}}`}},
		"what nobody needs to know":   {[]string{`← {"method":"Network.dataReceived","params":{},"sessionId":"s1"}`}, nil},
		"parents before their frames": {[]string{page, strings.Replace(attached("s9", "f", false), `}}`, `},"sessionId":"s1"}`, 1)}, []string{page, strings.Replace(attached("s9", "f", false), `}}`, `},"sessionId":"s1"}`, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, raw := range play(t, tt.said...).replay() {
				got = append(got, "← "+string(raw))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestPicturesAClientLeftUnansweredAreKnown(t *testing.T) {
	t.Parallel()
	tb := play(t, attached("s1", "t1", false), frame, frame, frame, `→ {"id":5,"method":"Page.screencastFrameAck","sessionId":"s1","params":{"sessionId":7}}`, "…"+frame)
	if diff := cmp.Diff(map[frameKey]int{{"s1", 7}: 2}, tb.takeUnacked(), cmp.AllowUnexported(frameKey{})); diff != "" {
		t.Fatal(diff)
	}
	if len(tb.takeUnacked()) != 0 {
		t.Fatal("they were told twice")
	}
}

func TestAFinishedDownloadIsToldOnce(t *testing.T) {
	t.Parallel()
	tb := play(t, begun, "…"+done)
	tb.replayed()
	if left := tb.replay(); len(left) != 0 {
		t.Fatalf("a second client would hear %s", left)
	}
}

// Whatever happens in whatever order, nothing is told of a session that is gone.
func TestNothingIsToldOfWhatIsGone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		tb := newTable()
		open := map[string]bool{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			s := rapid.SampledFrom([]string{"s1", "s2", "s3"}).Draw(rt, "session")
			method := rapid.SampledFrom([]string{
				"Target.attachedToTarget", "Target.detachedFromTarget", "Page.javascriptDialogOpening", "Page.fileChooserOpened",
				"Fetch.requestPaused", "Inspector.targetCrashed", "Page.screencastFrame",
			}).Draw(rt, "method")
			e := &envelope{Method: method, Session: s}
			raw := fmt.Sprintf(`{"method":"%s","sessionId":"%s"}`, method, s)
			if strings.HasPrefix(method, "Target.") {
				open[s] = method == "Target.attachedToTarget"
				e.Session, e.Params.SessionID = "", json.RawMessage(`"`+s+`"`)
			} else if !open[s] {
				continue // the browser says nothing of what is not attached
			}
			tb.fromBrowser(e, []byte(raw), rapid.Bool().Draw(rt, "present"))
		}
		for _, raw := range tb.replay() {
			for s, is := range open {
				if !is && bytes.Contains(raw, []byte(`"`+s+`"`)) {
					rt.Fatalf("%s is gone and told of: %s", s, raw)
				}
			}
		}
	})
}

func FuzzGlanceAgreesWithTheDecoder(f *testing.F) {
	for _, seed := range []string{`{"id":5,"method":"X.y","params":{}}`, `{"method":"X.y"}`, `{"id":7,"result":{}}`, `{"sessionId":"s","id":3}`, `{"id":}`, `{"id":1e2,"method":"a\"b"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, method := look(raw)
		var e envelope
		if !utf8.Valid(raw) || json.Unmarshal(raw, &e) != nil || bytes.Count(raw, []byte(`"id"`)) > 1 || bytes.Count(raw, []byte(`"method"`)) > 1 || bytes.ContainsRune(raw, '\\') || bytes.Contains(bytes.ToLower(raw), []byte(`"id"`)) != bytes.Contains(raw, []byte(`"id"`)) {
			return // not what either end writes
		}
		if strings.HasPrefix(string(raw), `{"id":`) && !strings.Contains(string(raw[:min(len(raw), 40)]), `,"method":"`) {
			return // an answer: its method is not looked for
		}
		if id != e.ID || method != e.Method {
			t.Fatalf("%s: looked like %d %q, is %d %q", raw, id, method, e.ID, e.Method)
		}
	})
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{'M', 0, 0, 0, 2, '{', '}'})
	f.Add([]byte{'M', 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := bufio.NewReader(bytes.NewReader(raw))
		var payload []byte
		for {
			var err error
			_, payload, err = readFrame(r, payload)
			if err != nil {
				return
			}
			if len(payload) > len(raw) {
				t.Fatal("a frame is longer than what was sent")
			}
		}
	})
}

func TestAMessageIsReadWithoutItsPicture(t *testing.T) {
	t.Parallel()
	const frame = `{"method":"Page.screencastFrame","params":{"data":"%s","metadata":{"offsetTop":0},"sessionId":7},"sessionId":"ABC"}`
	for name, tt := range map[string]struct{ raw, want string }{
		"a picture":           {fmt.Sprintf(frame, strings.Repeat("iVBO+/", 50000)), fmt.Sprintf(frame, "")},
		"an empty one":        {fmt.Sprintf(frame, ""), fmt.Sprintf(frame, "")},
		"none":                {`{"method":"Page.screencastFrame","params":{"sessionId":7}}`, `{"method":"Page.screencastFrame","params":{"sessionId":7}}`},
		"one that is cut off": {`{"params":{"data":"iVBO`, `{"params":{"data":"iVBO`},
	} {
		if got := string(withoutPicture([]byte(tt.raw))); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	var e envelope
	if err := json.Unmarshal(withoutPicture([]byte(fmt.Sprintf(frame, "AAAA"))), &e); err != nil || e.Session != "ABC" || e.cast() != 7 {
		t.Errorf("%+v, %v", e, err)
	}
}
