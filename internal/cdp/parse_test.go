package cdp

import (
	"bytes"
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
