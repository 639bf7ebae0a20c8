package cdp

import (
	"fmt"

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

func parse(raw []byte) (*message, error) {
	m := &message{}
	if err := jsonv2.Unmarshal(raw, m, jsonv2.AllowInvalidUTF8(true)); err != nil {
		return nil, err
	}
	return m, nil
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
