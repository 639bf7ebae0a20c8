package api

import (
	"fmt"

	"tapin/internal/secret"
)

// Acted is what every action on a page answers: where it has led, with a
// picture of it. An action that opened a dialog has that in place of the picture.
type Acted struct {
	SessionID string `json:"session_id"`
	TookMS    int64  `json:"took_ms" doc:"How long the action took, without the picture."`
	Page
	Questions []Question      `json:"questions,omitempty" doc:"What else the page asks the person at the browser now."`
	Outline   *SnapshotAnswer `json:"outline,omitempty" doc:"Where it was asked for and could be read, and the action has led to no other page."`
}

// Patience is how long an action may wait for its element.
type Patience struct {
	TimeoutMS int `json:"timeout_ms,omitempty" min:"1" max:"60000" doc:"How long to wait until a person could use the element; 10,000 without it."`
}

// Paying goes with actions that may be a payment.
type Paying struct {
	ApprovalID string `json:"approval_id,omitempty" max:"64" doc:"The approval that lets this pay, once."`
}

// ClickRequest is the body of POST /session/click.
type ClickRequest struct {
	Target
	Button string `json:"button,omitempty" enum:"left,right,middle" doc:"left without it."`
	Count  int    `json:"count,omitempty" min:"1" max:"3" doc:"2 is a double click; 1 without it."`
	Paying
	Patience
	Look
}

// ClickAnswer tells how the click was done and whether the page took notice.
type ClickAnswer struct {
	Clicked  bool   `json:"clicked"`
	Strategy string `json:"strategy" doc:"The step of the ladder that did it, such as S1_AX."`
	Effect   string `json:"effect" enum:"confirmed,none,unknown" doc:"Whether the page took notice."`
	Acted
}

// HoverRequest is the body of POST /session/hover.
type HoverRequest struct {
	Target
	Patience
	Look
}

// HoverAnswer tells how the pointer got there.
type HoverAnswer struct {
	Hovered  bool   `json:"hovered"`
	Strategy string `json:"strategy"`
	Effect   string `json:"effect" enum:"confirmed,none,unknown"`
	Acted
}

// DragRequest is the body of POST /session/drag: the element, and where to.
type DragRequest struct {
	Target
	To *Target `json:"to" required:"true" doc:"Where to let go, named in one way like the element itself."`
	Paying
	Patience
	Look
}

// Check refuses a drag of or to nothing, or several things.
func (r *DragRequest) Check() error {
	if err := r.Target.Check(); err != nil {
		return err
	}
	return within("to", r.To.Check())
}

// DragAnswer tells how the element was dragged.
type DragAnswer struct {
	Dragged  bool   `json:"dragged"`
	Strategy string `json:"strategy"`
	Effect   string `json:"effect" enum:"confirmed,none,unknown"`
	Acted
}

// TypeRequest is the body of POST /session/type.
type TypeRequest struct {
	Text secret.Text `json:"text,omitzero" max:"100000" doc:"What to type. It is in no answer, log or journal."`
	Element
	Clear  bool `json:"clear,omitempty" doc:"Empty the field first."`
	Submit bool `json:"submit,omitempty" doc:"Press Enter at the end."`
	Paying
	Patience
	Look

	// IdempotencyKey travels as the Idempotency-Key header: a repetition with
	// the same key and body is not typed again.
	IdempotencyKey string `json:"-"`
}

// Check refuses a request that would do nothing. Without an element the text
// goes into the focused field.
func (r *TypeRequest) Check() error {
	if r.Text.IsEmpty() && !r.Clear && !r.Submit {
		return invalid("field %q is required", "text").With("field", "text").WithHint("Give the text, or clear or submit.")
	}
	if !r.Given() {
		return nil
	}
	return r.Element.Check()
}

// TypeAnswer tells how much was typed and into what, and never what.
type TypeAnswer struct {
	Characters int    `json:"characters"`
	Field      string `json:"field,omitempty" doc:"The kind of the field: text, password, one-time-code and so on."`
	Acted
}

// FillRequest is the body of POST /session/fill.
type FillRequest struct {
	Fields []FieldValue `json:"fields" required:"true" doc:"The fields, filled in this order."`
	Patience
	Look
}

// FieldValue is one field and what it shall hold: a value, or a credential of
// the owner's, which goes from the keychain to the field and nowhere else.
type FieldValue struct {
	Element
	Value      *secret.Text `json:"value,omitempty" max:"100000" doc:"What the field shall hold: a text, a date, an option, true or false for a box. Empty clears it. Either this or credential."`
	Credential string       `json:"credential,omitempty" max:"253" doc:"The name of a credential that the owner keeps, such as chase. It is typed on the site it belongs to, over https, and nowhere else; nobody reads it back."`
	Part       string       `json:"part,omitempty" enum:"password,username,totp" doc:"Which part of the credential; the password without it."`
}

// Check refuses a field that is not named in exactly one way, or would not get
// exactly one thing.
func (f FieldValue) Check() error {
	if err := f.Element.Check(); err != nil {
		return err
	}
	switch {
	case f.Value == nil && f.Credential == "":
		return invalid("field %q is required", "value").With("field", "value").WithHint("Give a value, or the name of a credential.")
	case f.Value != nil && f.Credential != "":
		return invalid("there are both a value and a credential").With("field", "credential").WithHint("Keep one of them.")
	case f.Part != "" && f.Credential == "":
		return invalid("part goes with credential, and there is none").With("field", "credential")
	}
	return nil
}

// maxFields bounds one call; no form a person fills has as many.
const maxFields = 200

// Check refuses too many fields, or one that is not right.
func (r *FillRequest) Check() error {
	if len(r.Fields) > maxFields {
		return invalid("%d fields are more than %d", len(r.Fields), maxFields).With("field", "fields")
	}
	for i, f := range r.Fields {
		if err := within(fmt.Sprintf("fields[%d]", i), f.Check()); err != nil {
			return err
		}
	}
	return nil
}

// FillAnswer tells of each field whether it was filled.
type FillAnswer struct {
	Filled int           `json:"filled" doc:"How many fields were filled."`
	Fields []FilledField `json:"fields" doc:"In the order of the request."`
	Acted
}

// FilledField is what became of one field.
type FilledField struct {
	Field string `json:"field" doc:"How it was named."`
	OK    bool   `json:"ok" doc:"Whether it holds the value now."`
}

// PressRequest is the body of POST /session/press.
type PressRequest struct {
	Key string `json:"key" required:"true" max:"64" doc:"A key or combination, such as Enter or Control+A."`
	Paying
	Look
}

// SelectRequest is the body of POST /session/select.
type SelectRequest struct {
	Element
	Values []string `json:"values" required:"true" max:"4096" doc:"Values or visible texts of the options; several where the list allows it."`
	Patience
	Look
}

// SelectAnswer tells which options are chosen now.
type SelectAnswer struct {
	Selected []string `json:"selected" doc:"The values of the chosen options."`
	Acted
}

// UploadRequest is the body of POST /session/upload. Without an element the
// files go to the file chooser that is open.
type UploadRequest struct {
	Element
	Files []string `json:"files" required:"true" max:"4096" doc:"Files under the allowed folder, by full path or relative to it; none at all closes a file chooser."`
	Patience
	Look
}

// Check refuses a field that is named in more than one way.
func (r *UploadRequest) Check() error {
	if !r.Given() {
		return nil
	}
	return r.Element.Check()
}

// UploadAnswer tells how many files the page got.
type UploadAnswer struct {
	Files int `json:"files"`
	Acted
}

// ScrollRequest is the body of POST /session/scroll.
type ScrollRequest struct {
	Target
	Direction string `json:"direction,omitempty" enum:"up,down,left,right,top,bottom" doc:"Required unless an element is named, which then is scrolled into view."`
	Amount    int    `json:"amount,omitempty" min:"1" max:"1000000" doc:"CSS pixels; a page without it."`
	Patience
	Look
}

// Check refuses a scroll of nothing to nowhere.
func (r *ScrollRequest) Check() error {
	switch {
	case r.Given():
		return r.Target.Check()
	case r.Direction == "":
		return invalid("field %q is required", "direction").With("field", "direction").
			WithHint("Give a direction, or name the element to bring into view.")
	}
	return nil
}

// WaitRequest is the body of POST /session/wait.
type WaitRequest struct {
	Element
	Text      string `json:"text,omitempty" max:"1024" doc:"Text that the page shall show."`
	URL       string `json:"url,omitempty" max:"8192" doc:"A part of the address, or a pattern: ** is anything, * is anything but a slash."`
	State     string `json:"state,omitempty" enum:"visible,hidden,attached,networkidle,load,domcontentloaded" doc:"What the element or text shall be, visible without it; or what the page shall have reached."`
	TimeoutMS int    `json:"timeout_ms,omitempty" min:"1" max:"300000" doc:"How long to wait; 10,000 without it."`
	Look
}

// Check refuses a wait for nothing, or for two elements at once.
func (r *WaitRequest) Check() error {
	given := r.ways()
	if r.Text != "" {
		given = append(given, "text")
	}
	if len(given) == 0 && r.Name == "" {
		if r.State != "" || r.URL != "" {
			return nil
		}
		return invalid("there is nothing to wait for").WithHint("Give an element, text, url or state.")
	}
	return r.check(given, "selector, text, ref, label, role with name, test_id, xpath")
}

// DialogRequest is the body of POST /session/dialog.
type DialogRequest struct {
	Accept *bool       `json:"accept" required:"true" doc:"true is OK, false is Cancel."`
	Text   secret.Text `json:"text,omitzero" max:"100000" doc:"The answer to a prompt."`
	Paying
	Look
}

// TabRequest is the body of POST /session/tab.
type TabRequest struct {
	TabID  string `json:"tab_id" required:"true" max:"128" doc:"From GET /session/tabs."`
	Action string `json:"action" required:"true" enum:"switch,close"`
	Look
}

// TabsAnswer is the answer of GET /session/tabs.
type TabsAnswer struct {
	SessionID string `json:"session_id"`
	Tabs      []Tab  `json:"tabs"`
}

// SnapshotQuery says how much of the outline to give.
type SnapshotQuery struct {
	MaxChars    int  `json:"max_chars,omitempty" min:"100" max:"1000000" doc:"Where to cut; what is in view comes first."`
	Interactive bool `json:"interactive,omitempty" doc:"Only what can be acted on."`
	Offset      *int `json:"offset,omitempty" min:"0" doc:"The line to go on from, counted from 1; 0 is all of it, what is in view first. With it, whatever is left out names its own offset."`
	PartChars   int  `json:"part_chars,omitempty" min:"100" max:"1000000" doc:"Give a part beside it if it is longer than this: as much as fits, from offset on."`
	StirMS      int  `json:"stir_ms,omitempty" min:"0" max:"10000" doc:"Wait so long, at most, for something on the page to change."`
	StillMS     int  `json:"still_ms,omitempty" min:"0" max:"10000" doc:"Wait so long, at most, until the page has stood still for a moment."`
	Tabs        bool `json:"tabs,omitempty" doc:"Tell which tabs are open as well."`
}

// SnapshotAnswer is the page as an outline with refs.
type SnapshotAnswer struct {
	SessionID string   `json:"session_id"`
	Snapshot  string   `json:"snapshot" doc:"One line an element: role, name, state and ref."`
	Truncated bool     `json:"truncated"`
	Part      *string  `json:"part,omitempty" doc:"The part that was asked for beside it; whatever is left out names its offset."`
	Cut       bool     `json:"part_truncated,omitempty" doc:"Something is left out of the part."`
	URL       string   `json:"url"`
	Title     string   `json:"title"`
	Tabs      []string `json:"tabs,omitempty" doc:"The ids of the tabs that are open, where they were asked for."`
}

// TextQuery says how much of the text to give.
type TextQuery struct {
	MaxChars int `json:"max_chars,omitempty" min:"1" max:"1000000" doc:"Where to cut."`
}

// TextAnswer is what the page says.
type TextAnswer struct {
	SessionID string `json:"session_id"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"`
}

// ExtractRequest is the body of POST /session/extract.
type ExtractRequest struct {
	Instruction string `json:"instruction,omitempty" max:"10000" doc:"What to read: selector: CSS, xpath: XPATH, several chained with a semicolon, table: CSS, json: {field: selector, …}, markdown, article. The page's text without it."`
	MaxChars    int    `json:"max_chars,omitempty" min:"100" max:"1000000" doc:"Where to cut; 20,000 without it. Rows and items are left out whole."`
}

// Extracted is what an instruction found, and where.
type Extracted struct {
	Title      string `json:"title"`
	FinalURL   string `json:"final_url" doc:"Of the page that was read."`
	StatusCode int    `json:"status_code" doc:"Of the response the page came with; 0 when it is not known."`
	Content    any    `json:"content" doc:"A text; rows for a table, and the shape asked for with json."`
	Kind       string `json:"kind" enum:"text,table,json,markdown,article"`
	Truncated  bool   `json:"truncated"`
	Note       string `json:"note,omitempty" doc:"What to know about it, such as fields that were not found."`
}

// ExtractAnswer is the answer of POST /session/extract.
type ExtractAnswer struct {
	SessionID string `json:"session_id"`
	Extracted
}

// Downloads is the answer of GET /session/downloads.
type Downloads struct {
	SessionID string     `json:"session_id"`
	Downloads []Download `json:"downloads"`
}

// Download is a file that a page sent.
type Download struct {
	DownloadID string `json:"download_id"`
	Name       string `json:"name" doc:"The name the page gave it."`
	URL        string `json:"url" doc:"Where it came from, without query."`
	Bytes      int64  `json:"bytes" doc:"How much has arrived."`
	Total      int64  `json:"total" doc:"How much there is; 0 when the site does not say."`
	State      string `json:"state"`
	Path       string `json:"path,omitempty" doc:"Where the file is, once it is complete."`
}

// PermissionRequest is the body of POST /session/permission.
type PermissionRequest struct {
	Name   string `json:"name" required:"true" max:"64" doc:"What is asked for, such as geolocation or notifications."`
	Grant  *bool  `json:"grant" required:"true"`
	Origin string `json:"origin,omitempty" max:"8192" doc:"Which site it is for; the one of the page without it."`
	Look
}

// AuthRequest is the body of POST /session/auth.
type AuthRequest struct {
	Username string      `json:"username" required:"true" max:"1024"`
	Password secret.Text `json:"password,omitzero" max:"4096" doc:"It is in no answer, log or journal."`
	Look
}
