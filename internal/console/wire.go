package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"tapin/internal/api"
	"tapin/internal/fault"
)

const (
	// maxMessage bounds what a page may say at once.
	maxMessage = 4 << 10
	// maxMistakes is how many messages may make no sense before a socket ends.
	maxMistakes = 20
)

// message is what a page says: that it is there, or what the owner wants done.
type message struct {
	T string `json:"t"` // ping or do

	N int64 `json:"n"` // of a ping

	A       string `json:"a"`
	ID      string `json:"id"`
	Seq     int64  `json:"seq"`
	Version int    `json:"version"`
	Minutes int    `json:"minutes"`
	Number  int    `json:"number"`
	Days    int    `json:"days"`
	Before  string `json:"before"`
	// Amount and Currency are what was shown of the page beside the button.
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	// Proposal is the one that was shown beside the button.
	Proposal string `json:"proposal"`
}

// parse reads a message. What it refuses it never quotes.
func parse(raw []byte) (message, error) {
	var m message
	if len(raw) > maxMessage {
		return m, fault.New(fault.PayloadTooLarge, "", "that is too much at once")
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if !utf8.Valid(raw) || in.Decode(&m) != nil || !errors.Is(in.Decode(&struct{}{}), io.EOF) {
		return message{}, fault.New(fault.InvalidRequest, "", "that is no message")
	}
	if m.T != "ping" && m.T != "do" || len(m.ID) > 128 || len(m.Before) > 128 || len(m.Proposal) > 128 {
		return message{}, fault.New(fault.InvalidRequest, "", "there is no message of that kind")
	}
	return m, nil
}

// The messages to a page.
type (
	stateMessage struct {
		T   string `json:"t"`
		N   uint64 `json:"n"`
		Now int64  `json:"now,omitempty"` // Unix ms here, for devices whose clock is wrong
		State
	}
	openMessage struct {
		T   string `json:"t"`
		ID  string `json:"id"`
		URL string `json:"url"`
	}
	historyMessage struct {
		T     string `json:"t"`
		Items []Past `json:"items"`
		More  string `json:"more"`
	}
	figuresMessage struct {
		T string `json:"t"`
		*api.Analytics
	}
	noteMessage struct {
		T    string     `json:"t"`
		Seq  int64      `json:"seq"`
		OK   bool       `json:"ok"`
		Code fault.Code `json:"code,omitempty"`
		Text string     `json:"text"`
		Hint string     `json:"hint,omitempty"`
	}
	pong struct {
		T string `json:"t"`
		N int64  `json:"n"`
	}
	end struct {
		T      string `json:"t"`
		Reason string `json:"reason"`
	}
)

// noteOf is a failure in words for the one who caused it.
func noteOf(seq int64, err error) noteMessage {
	f := fault.Of(err)
	return noteMessage{T: "note", Seq: seq, Code: f.Code, Text: f.Details(), Hint: f.Hint}
}

// encode makes a message of ours; there is none that cannot be encoded.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"t":"note","code":"INTERNAL","text":"a message could not be written"}`)
	}
	return raw
}
