package api_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// sample has a field of every kind a request may have.
type sample struct {
	URL       string          `json:"url,omitempty" max:"20"`
	Context   string          `json:"context,omitempty"`
	FullPage  bool            `json:"full_page,omitempty"`
	TimeoutMS int             `json:"timeout_ms,omitempty" min:"1" max:"60000"`
	Scale     float64         `json:"scale,omitempty" max:"8"`
	After     *uint64         `json:"after,omitempty"`
	Button    string          `json:"button,omitempty" enum:"left,right"`
	Text      secret.Text     `json:"text,omitzero"`
	Since     time.Time       `json:"since,omitzero"`
	Fields    []item          `json:"fields,omitempty"`
	Names     []string        `json:"names,omitempty" enum:"a,b"`
	Free      map[string]any  `json:"free,omitempty"`
	Raw       json.RawMessage `json:"raw,omitempty"`
	Hidden    string          `json:"-"`
	api.Look
}

type item struct {
	Label string `json:"label" required:"true"`
	TabID string `json:"tab_id,omitempty"`
	// A type may use a spelling that is an alias elsewhere.
	RunID string `json:"runId,omitempty"`
}

func TestABodyIsDecoded(t *testing.T) {
	t.Parallel()
	yes, seven := true, uint64(7)
	for name, tt := range map[string]struct {
		body string
		want sample
	}{
		"nothing is an empty object":        {"", sample{}},
		"blanks are too":                    {" \r\n\t", sample{}},
		"null is the same as absent":        {`{"url":null,"after":null,"fields":null,"screenshot":null}`, sample{}},
		"plain values":                      {`{"url":"u","full_page":true,"timeout_ms":5,"scale":1.5,"after":7}`, sample{URL: "u", FullPage: true, TimeoutMS: 5, Scale: 1.5, After: &seven}},
		"the other spellings":               {`{"fullPage":true,"timeoutMs":5,"contextName":"bank"}`, sample{FullPage: true, TimeoutMS: 5, Context: "bank"}},
		"other spellings inside lists":      {`{"fields":[{"label":"a","tabId":"t"}]}`, sample{Fields: []item{{Label: "a", TabID: "t"}}}},
		"a spelling that is the type's own": {`{"fields":[{"label":"a","runId":"r"}]}`, sample{Fields: []item{{Label: "a", RunID: "r"}}}},
		"a field of an embedded type":       {`{"screenshot":true}`, sample{Look: api.Look{Screenshot: &yes}}},
		"types that read themselves":        {`{"text":"s","since":"2026-01-02T03:04:05Z"}`, sample{Text: secret.New("s"), Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
		"free-form members":                 {`{"free":{"any":[1,{"x":null}]}}`, sample{Free: map[string]any{"any": []any{1.0, map[string]any{"x": nil}}}}},
		"a list of texts":                   {`{"names":["a","b"]}`, sample{Names: []string{"a", "b"}}},
		"text with escapes":                 {`{"\u0075rl":"\u00fc\n"}`, sample{URL: "ü\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got sample
			if err := api.Decode([]byte(tt.body), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.Comparer(secret.Text.Equal)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestABadBodyIsRefused(t *testing.T) {
	t.Parallel()
	const canary = "9471108"
	for name, tt := range map[string]struct{ body, details, hint string }{
		"not an object":                    {`[1]`, "must be a JSON object, not a list", ""},
		"null":                             {`null`, "must be a JSON object, not null", ""},
		"broken off":                       {`{"url":"x`, "breaks at byte 9", ""},
		"two objects":                      {`{} {}`, "breaks at byte 4", ""},
		"a comma too many":                 {`{"url":"x",}`, "breaks at byte", ""},
		"not UTF-8":                        {"{\"url\":\"\xff\"}", "UTF-8", ""},
		"a name twice":                     {`{"url":"a","url":"b"}`, `"url" is given twice`, ""},
		"a name twice, once escaped":       {`{"url":"a","\u0075rl":"b"}`, `"url" is given twice`, ""},
		"a name twice in a free member":    {`{"free":{"a":{"x":1,"x":2}}}`, `"free.a.x" is given twice`, ""},
		"both spellings":                   {`{"full_page":true,"fullPage":true}`, `"fullPage" and "full_page" are the same`, ""},
		"two other spellings":              {`{"contextName":"a","context_name":"b"}`, "are the same", ""},
		"too deep":                         {`{"free":` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}`, "deeper than 32", ""},
		"an unknown field":                 {`{"zebra":1}`, `unknown field "zebra"`, "Known here: url, context"},
		"a misspelt field":                 {`{"timout_ms":1}`, `unknown field "timout_ms"`, `Did you mean "timeout_ms"?`},
		"another case":                     {`{"URL":"x"}`, `unknown field "URL"`, `Did you mean "url"?`},
		"an unknown field in a list":       {`{"fields":[{"label":"a","lable":"b"}]}`, `unknown field "fields[0].lable"`, `Did you mean "fields[0].label"?`},
		"a hidden field":                   {`{"Hidden":"x"}`, `unknown field "Hidden"`, ""},
		"an endless name":                  {`{"` + strings.Repeat("é", 5000) + `":1}`, "unknown field", ""},
		"a text for a number":              {`{"timeout_ms":"` + canary + `"}`, `"timeout_ms" must be a whole number in range, not a text`, ""},
		"a fraction for a whole number":    {`{"timeout_ms":1.5}`, "whole number", ""},
		"a number that does not fit":       {`{"timeout_ms":` + canary + `00000000000000000}`, "whole number", ""},
		"a negative one":                   {`{"after":-1}`, `"after" must be a whole number of 0 or more`, ""},
		"a text for true":                  {`{"full_page":"true"}`, `"full_page" must be true or false, not a text`, ""},
		"a number for a text":              {`{"url":` + canary + `}`, `"url" must be a text, not a number`, ""},
		"an object for a list":             {`{"fields":{}}`, `"fields" must be a list, not an object`, ""},
		"a text for an object":             {`{"fields":["` + canary + `"]}`, `"fields[0]" must be an object, not a text`, ""},
		"null in a list":                   {`{"fields":[null]}`, `"fields[0]" must be an object, not null`, ""},
		"a required one missing in a list": {`{"fields":[{"label":"a"},{}]}`, `"fields[1].label" is required`, ""},
		"below the least":                  {`{"timeout_ms":0}`, `"timeout_ms" must be at least 1`, ""},
		"above the most":                   {`{"timeout_ms":60001}`, "at most 60000", ""},
		"too long":                         {`{"url":"` + canary + strings.Repeat("x", 20) + `"}`, "longer than 20 bytes", ""},
		"none of the choices":              {`{"button":"` + canary + `"}`, "must be one of left, right", ""},
		"none of the choices, in a list":   {`{"names":["a","` + canary + `"]}`, `"names[1]" must be one of a, b`, ""},
		"a date that is none":              {`{"since":"` + canary + `"}`, `"since" cannot be read`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := api.Decode([]byte(tt.body), new(sample))
			f := fault.Of(err)
			if !errors.Is(err, fault.InvalidRequest) || !strings.Contains(f.Details(), tt.details) || !strings.Contains(f.Advice(), tt.hint) {
				t.Fatalf("got %v (%q)", err, f)
			}
			if strings.Contains(f.Details()+f.Advice(), canary) || len(f.Details()) > 300 {
				t.Fatalf("the error repeats what was sent: %v", err)
			}
		})
	}
}

func TestAQueryIsDecoded(t *testing.T) {
	t.Parallel()
	var got sample
	if err := api.DecodeQuery("fullPage=true&timeout_ms=7&after=0&url=a+b", &got); err != nil {
		t.Fatal(err)
	}
	zero := uint64(0)
	if diff := cmp.Diff(sample{FullPage: true, TimeoutMS: 7, After: &zero, URL: "a b"}, got, cmp.Comparer(secret.Text.Equal)); diff != "" {
		t.Fatal(diff)
	}
	for _, raw := range []string{"full_page=TRUE", "full_page=null", "full_page=+true", "timeout_ms=", "timeout_ms=x", "after=-1", "after=1&after=2", "nope=1", "a=%gg", "a;b"} {
		if err := api.DecodeQuery(raw, new(sample)); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// What the client writes the server reads, whatever the values.
func TestRequestsSurviveTheTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 20, 60)
		want := api.StartRequest{
			URL: text.Draw(t, "url"), Context: text.Draw(t, "context"), Locale: text.Draw(t, "locale"),
			Mobile: rapid.Bool().Draw(t, "mobile"), TimeoutS: rapid.IntRange(0, 86400).Draw(t, "timeout"),
		}
		if rapid.Bool().Draw(t, "with viewport") {
			side := rapid.IntRange(1, 10000)
			want.Viewport = &api.Viewport{Width: side.Draw(t, "w"), Height: side.Draw(t, "h"), Scale: rapid.Float64Range(0, 8).Draw(t, "s")}
		}
		if rapid.Bool().Draw(t, "with choice") {
			choice := rapid.Bool().Draw(t, "choice")
			want.SaveContext, want.Screenshot = &choice, &choice
		}
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got api.StartRequest
		if err := api.Decode(raw, &got); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}

// FuzzDecode holds the strict decoder against the standard one: what it
// accepts, the standard decoder reads the same way, and what it refuses it
// refuses in the contract's words.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `null`, `{"url":"http://a/","screenshot":false}`, `{"viewport":{"width":1,"height":2,"scale":0.5}}`,
		`{"contextName":"a"}`, `{"context":"a","contextName":"b"}`, `{"timeout_s":1e2}`, `{"url":"\ud800"}`, `{"url":{"a":[[[[]]]]}}`, "{\"url\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got api.StartRequest
		if err := api.Decode(body, &got); err != nil {
			if !errors.Is(err, fault.InvalidRequest) || len(err.Error()) > 400 {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if len(strings.TrimSpace(string(body))) == 0 {
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatalf("accepted %q: %v", body, err)
		}
		for alias, name := range map[string]string{"contextName": "context", "context_name": "context", "saveContext": "save_context", "timeoutS": "timeout_s"} {
			if raw, ok := members[alias]; ok {
				delete(members, alias)
				members[name] = raw
			}
		}
		plain, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		var want api.StartRequest
		if err := json.Unmarshal(plain, &want); err != nil || !reflect.DeepEqual(want, got) {
			t.Fatalf("%q: %v\n%s", body, err, cmp.Diff(want, got))
		}
	})
}
