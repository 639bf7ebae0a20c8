package cdp

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
)

// message is anything that comes over the wire.
type message struct {
	ID      int64            `json:"id"`
	Session target.SessionID `json:"sessionId"`
	Method  string           `json:"method"`
	Params  jsonv2.Value     `json:"params"`
	Result  jsonv2.Value     `json:"result"`
	Error   *Error           `json:"error"`

	mark chan struct{} // not a message: closed when the dispatcher comes by
}

// Error is the browser's refusal of a command.
type Error struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// parse reads a message. A picture is left out for that, and put back afterwards:
// the decoder would go through it letter by letter.
func parse(raw []byte) (*message, error) {
	at, length := picture(raw)
	if length < large {
		return parseAll(raw)
	}
	rest := slices.Concat(raw[:at], raw[at+length:])
	m, err := parseAll(rest)
	if err != nil {
		return nil, err
	}
	value := &m.Result
	if len(m.Result) == 0 {
		value = &m.Params
	}
	from := at - len(pictureBegins)
	if (len(m.Result) > 0) == (len(m.Params) > 0) || !bytes.HasPrefix(rest[from:], *value) {
		return parseAll(raw) // it is somewhere else
	}
	*value = bytes.Clone(raw[from : from+len(*value)+length])
	return m, nil
}

func parseAll(raw []byte) (*message, error) {
	m := &message{}
	if err := jsonv2.Unmarshal(raw, m, jsonv2.AllowInvalidUTF8(true)); err != nil {
		return nil, err
	}
	return m, nil
}

const (
	// large is from how many letters on a picture is worth it.
	large = 4 << 10
	// pictureBegins is before a picture, wherever a browser sends one, and
	// pictureWithin how far into the message that is.
	pictureBegins = `{"data":"`
	pictureWithin = 200
)

// picture is where one is in a message, and how long its text.
func picture(raw []byte) (at, length int) {
	at = bytes.Index(raw[:min(len(raw), pictureWithin)], []byte(pictureBegins)) + len(pictureBegins)
	if at < len(pictureBegins) {
		return 0, 0
	}
	length = bytes.IndexByte(raw[at:], '"')
	if length < 0 || bytes.IndexByte(raw[at:at+length], '\\') >= 0 {
		return 0, 0
	}
	return at, length
}

// call is the shape of a command on the wire. The method comes early: the
// holder looks at the beginning of a message.
type call struct {
	ID      int64            `json:"id"`
	Method  string           `json:"method"`
	Session target.SessionID `json:"sessionId,omitzero"`
	Params  any              `json:"params,omitempty"`
}

func encode(id int64, s target.SessionID, method string, params any) ([]byte, error) {
	raw, err := jsonv2.Marshal(call{ID: id, Method: method, Session: s, Params: params}, jsonv2.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("%s: parameters cannot be encoded", method)
	}
	return raw, nil
}
