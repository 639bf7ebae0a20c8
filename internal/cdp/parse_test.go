package cdp

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// What a message says is its own: a transport reads the next one into the same place.
func TestAMessageOutlivesItsBytes(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"id":7,"sessionId":"S","method":"M","params":{"a":"b"},"result":{"c":"d"},"error":{"code":1,"message":"no"}}`)
	m, err := parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	copy(raw, bytes.Repeat([]byte("x"), len(raw)))
	if m.Session != "S" || m.Method != "M" || string(m.Params) != `{"a":"b"}` || string(m.Result) != `{"c":"d"}` || m.Error.Message != "no" {
		t.Errorf("the message became %q %q %s %s %v", m.Session, m.Method, m.Params, m.Result, m.Error)
	}
}

// A message with a picture is read in another way, and says the same.
func FuzzAPictureIsReadAsEverythingElse(f *testing.F) {
	long := strings.Repeat("iVBORw0KGgo+/9=", large/8)
	for _, seed := range []string{
		`{"id":7,"result":{"data":"PICTURE"},"sessionId":"S"}`,
		`{"method":"Page.screencastFrame","params":{"data":"PICTURE","metadata":{"offsetTop":0},"sessionId":3},"sessionId":"S"}`,
		`{"id":7,"result":{"data":"PICTURE","more":[{"data":"PICTURE"}]}}`, `{"sessionId":"S","result":{"data":"PICTURE"},"id":7}`,
		`{"id":7,"result":{"deep":{"data":"PICTURE"}},"sessionId":"S"}`, `{"id":7,"other":{"data":"PICTURE"},"result":{"data":"PICTURE"}}`,
		`{"id":7,"params":{"data":""},"result":{"data":"PICTURE"}}`, `{"id":7,"result":{"data":"a\\PICTURE"}}`, `{"id":7,"result":{ "data":"PICTURE"}}`,
		`{"id":7,"error":{"code":1,"message":"{\"data\":\"PICTURE"}}`, `{"id":7,"result":{"data":"PICTURE"}`, `{"id":7,"result":{"data":"PICTURE`, `{"data":"PICTURE"}`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, form string) {
		raw := []byte(strings.ReplaceAll(form, "PICTURE", long))
		want, wrong := parseAll(raw)
		if wrong != nil {
			_, _ = parse(raw) // which may be more lenient, and must not fall over
			return
		}
		got, err := parse(raw)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		copy(raw, bytes.Repeat([]byte("x"), len(raw)))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s was read as %+.300v, not %+.300v", form, got, want)
		}
	})
}
