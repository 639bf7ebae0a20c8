package liveview

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"time"
	"unicode/utf8"

	"tapin/internal/fault"
	"tapin/internal/secret"
)

const (
	// maxMessage bounds what a page may say at once; a text may be longer.
	maxMessage = 64 << 10
	maxText    = 256 << 10
	// maxMistakes is how many messages may make no sense before a socket ends.
	maxMistakes = 20
)

// message is what a page says; which of its parts matter, its kind tells.
type message struct {
	kind    string
	handoff string // under which it was meant
	part    any
}

// The parts of messages, by their kinds.
type (
	ack struct {
		Number uint32  `json:"number"`
		W      float64 `json:"w"`
		H      float64 `json:"h"`
		DPR    float64 `json:"dpr"`
	}
	view struct {
		W      float64 `json:"w"`
		H      float64 `json:"h"`
		DPR    float64 `json:"dpr"`
		Zoom   float64 `json:"zoom"`
		Hidden bool    `json:"hidden"`
		Rest   [2]int  `json:"rest"`   // the stage while no keyboard covers it
		Screen [2]int  `json:"screen"` // the whole glass
		Fit    string  `json:"fit"`    // auto, phone or desktop
	}
	ping struct {
		N int64 `json:"n"`
	}
	ptr struct {
		K       string  `json:"k"`
		X       float64 `json:"x"`
		Y       float64 `json:"y"`
		F       int     `json:"f"`
		B       string  `json:"b"`
		C       int     `json:"c"`
		M       int64   `json:"m"`
		Fingers []struct {
			F int     `json:"f"`
			X float64 `json:"x"`
			Y float64 `json:"y"`
		} `json:"fingers"`
	}
	wheel struct {
		X  float64 `json:"x"`
		Y  float64 `json:"y"`
		DX float64 `json:"dx"`
		DY float64 `json:"dy"`
		M  int64   `json:"m"`
	}
	key struct {
		K    string `json:"k"`
		Key  string `json:"key"`
		Code string `json:"code"`
		M    int64  `json:"m"`
		R    bool   `json:"r"`
	}
	text struct {
		S secret.Text `json:"s"`
	}
	compose struct {
		S secret.Text `json:"s"`
		A int64       `json:"a"`
		B int64       `json:"b"`
	}
	edit struct {
		ID        string       `json:"id"`
		Value     secret.Text  `json:"value"`
		Selection []int        `json:"selection"`
		Base      *secret.Text `json:"base"`
		Seq       int64        `json:"seq"`
	}
	choose struct {
		ID     string        `json:"id"`
		Values []secret.Text `json:"values"`
	}
	onField struct {
		ID     string `json:"id"`
		Number int64  `json:"n"` // of a focus, by which it is answered
	}
	deed struct {
		A        string      `json:"a"`
		ID       string      `json:"id"` // of a tab, a download or a dialog
		Accept   bool        `json:"accept"`
		Text     secret.Text `json:"text"`
		Origin   string      `json:"origin"`
		Name     string      `json:"name"`
		Grant    bool        `json:"grant"`
		Username secret.Text `json:"username"`
		Password secret.Text `json:"password"`
		Minutes  int         `json:"minutes"`
		Anyway   bool        `json:"anyway"`
		Choice   string      `json:"choice"` // of a layout
	}
	auth struct {
		Bearer secret.Text `json:"bearer"`
	}
	nothing struct{}
)

// parts makes an empty part of each kind.
var parts = map[string]func() any{
	"ack": func() any { return &ack{} }, "view": func() any { return &view{} }, "ping": func() any { return &ping{} },
	"ptr": func() any { return &ptr{} }, "wheel": func() any { return &wheel{} }, "key": func() any { return &key{} },
	"text": func() any { return &text{} }, "compose": func() any { return &compose{} }, "copy": func() any { return &nothing{} }, "paste": func() any { return &text{} },
	"edit": func() any { return &edit{} }, "choose": func() any { return &choose{} },
	"focus": func() any { return &onField{} }, "blur": func() any { return &onField{} }, "enter": func() any { return &onField{} }, "files": func() any { return &onField{} },
	"do": func() any { return &deed{} }, "auth": func() any { return &auth{} },
}

// aboutPicture are the kinds that are meant for no hand-off.
var aboutPicture = map[string]bool{"ack": true, "view": true, "ping": true}

// long are the kinds that carry a person's text.
var long = map[string]bool{"paste": true, "edit": true, "text": true}

// parse reads a message. What it refuses it never quotes.
func parse(raw []byte) (message, error) {
	var head struct {
		T string          `json:"t"`
		H json.RawMessage `json:"h"` // a height, in what is about the picture
	}
	if !utf8.Valid(raw) || json.Unmarshal(raw, &head) != nil {
		return message{}, fault.New(fault.InvalidRequest, "", "that is no message")
	}
	empty := parts[head.T]
	if empty == nil {
		return message{}, fault.New(fault.InvalidRequest, "", "there is no message of that kind")
	}
	if len(raw) > maxMessage && !long[head.T] || len(raw) > maxText {
		return message{}, fault.New(fault.PayloadTooLarge, "", "that is too much at once")
	}
	m := message{kind: head.T, part: empty()}
	err := json.Unmarshal(raw, m.part)
	if err == nil && len(head.H) > 0 && !aboutPicture[head.T] {
		err = json.Unmarshal(head.H, &m.handoff)
	}
	if err != nil {
		return message{}, fault.New(fault.InvalidRequest, "", "a message of kind %s does not look like that", head.T)
	}
	return m, nil
}

// headerBytes is the length of what stands before each picture.
const headerBytes = 40

// The flags of a picture.
const (
	flagSharp = 1
	flagFirst = 2
	flagMore  = 4 // parts of it follow, see send.go
)

// header is what a page must know of a picture to draw it and to say where a
// finger touches it.
func (p *picture) header(now time.Time) [headerBytes]byte {
	var h [headerBytes]byte
	put := binary.BigEndian
	h[0], h[1] = 1, p.flags
	put.PutUint16(h[2:], p.tab)
	put.PutUint32(h[4:], p.number)
	for i, v := range []float64{p.Width, p.Height, p.Scale, p.Top, p.ScrollX, p.ScrollY} {
		put.PutUint32(h[8+4*i:], math.Float32bits(float32(v)))
	}
	put.PutUint32(h[36:], uint32(now.UnixMilli())) //nolint:gosec // its last bits tell how long it was on its way
	age := max(0, now.Sub(p.At))
	put.PutUint32(h[32:], uint32(min(age.Milliseconds(), math.MaxUint32))) //nolint:gosec // bounded on both sides
	return h
}

// The messages to a page.
type (
	hello struct {
		T     string    `json:"t"`
		V     int       `json:"v"`
		You   you       `json:"you"`
		Touch bool      `json:"touch"`
		Look  helloLook `json:"look"`
	}
	you struct {
		ID   string `json:"id"`
		Mode string `json:"mode"`
	}
	helloLook struct {
		Width  int     `json:"width"`
		Height int     `json:"height"`
		DPR    float64 `json:"dpr"`
		Mobile bool    `json:"mobile"`
	}
	state struct {
		T         string          `json:"t"`
		N         uint64          `json:"n"`
		Now       int64           `json:"now,omitempty"` // Unix ms, for a phone whose clock is wrong
		Driver    string          `json:"driver"`        // agent, you, other, nobody
		CanDrive  bool            `json:"can_drive"`
		Session   stateSession    `json:"session"`
		Handoff   *stateHandoff   `json:"handoff"`
		Tabs      []stateTab      `json:"tabs"`
		Page      *statePage      `json:"page"`
		Layout    stateLayout     `json:"layout"`
		Dialog    *stateDialog    `json:"dialog"`
		Questions []stateQuestion `json:"questions"`
		Downloads []stateDownload `json:"downloads"`
		Viewers   int             `json:"viewers"`
	}
	// stateLayout is how the page in front is laid out: for the driver's phone or as
	// the agent has it, whether it was made for phones too, and whether it does not
	// bear to be laid out anew.
	stateLayout struct {
		Phone  bool `json:"phone"`
		Mobile bool `json:"mobile"`
		Fixed  bool `json:"fixed"`
		Touch  bool `json:"touch"`
	}
	stateSession struct {
		Deadline time.Time `json:"deadline"`
	}
	stateHandoff struct {
		ID          string       `json:"id"`
		Version     int          `json:"version"`
		Reason      string       `json:"reason"`
		Instruction string       `json:"instruction"`
		Task        string       `json:"task,omitempty"`
		Site        string       `json:"site,omitempty"`
		Deadline    time.Time    `json:"deadline"`
		Attempts    int          `json:"attempts"`
		Verify      *stateVerify `json:"verify"`
		CountdownMS *int64       `json:"countdown_ms,omitempty"`
		Status      string       `json:"status"`
		Parked      bool         `json:"parked"`
	}
	stateVerify struct {
		Checked []string `json:"checked"`
		Held    bool     `json:"held"`
	}
	stateTab struct {
		ID     string `json:"id"`
		Index  uint16 `json:"index"`
		Title  string `json:"title"`
		Origin string `json:"origin"`
		Active bool   `json:"active"`
	}
	statePage struct {
		Origin      string `json:"origin"`
		Host        string `json:"host"`
		Registrable string `json:"registrable"`
		Secure      bool   `json:"secure"`
		Title       string `json:"title"`
		Loading     bool   `json:"loading"`
		Crashed     bool   `json:"crashed"`
	}
	stateDialog struct {
		ID      string `json:"id"`
		Kind    string `json:"kind"`
		Message string `json:"message"`
		Default string `json:"default"`
		Origin  string `json:"origin"`
	}
	stateQuestion struct {
		ID       string `json:"id"`
		Kind     string `json:"kind"`
		Origin   string `json:"origin,omitempty"`
		Name     string `json:"name,omitempty"`
		Realm    string `json:"realm,omitempty"`
		Multiple bool   `json:"multiple,omitempty"`
	}
	stateDownload struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Bytes int64  `json:"bytes"`
		State string `json:"state"`
	}
	note struct {
		T    string     `json:"t"`
		Code fault.Code `json:"code"`
		Text string     `json:"text"`
		Hint string     `json:"hint,omitempty"`
	}
	pong struct {
		T   string `json:"t"`
		N   int64  `json:"n"`
		Now int64  `json:"now"` // Unix ms
	}
	end struct {
		T      string `json:"t"`
		Reason string `json:"reason"`
	}
	clip struct {
		T    string `json:"t"`
		Text string `json:"text"`
	}
	reached struct {
		T      string `json:"t"`
		Number int64  `json:"n"`
	}
)

// noteOf is a failure in words for the one who caused it.
func noteOf(err error) note {
	f := fault.Of(err)
	return note{T: "note", Code: f.Code, Text: f.Details(), Hint: f.Hint}
}

// encode makes a message of ours; there is none that cannot be encoded.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"t":"note","code":"INTERNAL","text":"a message could not be written"}`)
	}
	return raw
}
