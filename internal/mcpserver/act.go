package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// act does something on a page and tells what became of it.
func act[A any](ctx context.Context, c *call, id string, do func(*api.Client) (*A, error), common func(*A) *api.Acted) (*A, shown, error) {
	c.prepare(ctx, id)
	done, err := tell(ctx, c.line, do)
	if err != nil {
		return nil, shown{}, err
	}
	acted := common(done)
	return done, shown{acted.SessionID, c.observe(ctx, acted.SessionID, acted.Page, acted.Questions, acted.Outline)}, nil
}

// plainly is act for an action whose answer is nothing but where it has led.
func plainly(ctx context.Context, c *call, id, words string, do func(*api.Client) (*api.Acted, error)) (string, *shown, error) {
	_, s, err := act(ctx, c, id, do, func(a *api.Acted) *api.Acted { return a })
	if err != nil {
		return "", nil, err
	}
	return sentence(words, s.Page.words), &s, nil
}

type clickIn struct {
	spot
	DoubleClick bool   `json:"doubleClick,omitempty"`
	Button      string `json:"button,omitempty" enum:"left,right,middle" default:"\"left\""`
	Count       int    `json:"count,omitempty" min:"1" max:"3" hidden:"true"`
	ApprovalID  string `json:"approval_id,omitempty" max:"64" doc:"Of oc_approval_request, where this pays."`
	patience
	session
}

type clicked struct {
	Strategy string `json:"strategy,omitempty" doc:"The step of the ladder that did it."`
	Effect   string `json:"effect,omitempty" enum:"confirmed,none,unknown" doc:"Whether the page took notice."`
	shown
}

func click(ctx context.Context, c *call, in *clickIn) (string, *clicked, error) {
	target, err := in.one()
	if err != nil {
		return "", nil, err
	}
	req := api.ClickRequest{Target: target, Button: in.Button, Count: in.Count, Paying: api.Paying{ApprovalID: in.ApprovalID}, Patience: in.wait(), Look: outlined()}
	if in.DoubleClick {
		req.Count = 2
	}
	done, s, err := act(ctx, c, in.SessionID,
		func(client *api.Client) (*api.ClickAnswer, error) { return client.Click(ctx, in.SessionID, req) },
		func(a *api.ClickAnswer) *api.Acted { return &a.Acted })
	if err != nil {
		return "", nil, err
	}
	return sentence("Clicked"+effect(done.Effect), s.Page.words), &clicked{done.Strategy, done.Effect, s}, nil
}

// effect says whether the page took notice.
func effect(e string) string {
	switch e {
	case "confirmed":
		return "; the page took notice."
	case "none":
		return "; the page took no notice."
	}
	return "; whether the page took notice is not known: look before you do it again."
}

type hoverIn struct {
	spot
	patience
	session
}

func hover(ctx context.Context, c *call, in *hoverIn) (string, *clicked, error) {
	target, err := in.one()
	if err != nil {
		return "", nil, err
	}
	done, s, err := act(ctx, c, in.SessionID,
		func(client *api.Client) (*api.HoverAnswer, error) {
			return client.Hover(ctx, in.SessionID, api.HoverRequest{Target: target, Patience: in.wait(), Look: outlined()})
		},
		func(a *api.HoverAnswer) *api.Acted { return &a.Acted })
	if err != nil {
		return "", nil, err
	}
	return sentence("Pointed at it"+effect(done.Effect), s.Page.words), &clicked{done.Strategy, done.Effect, s}, nil
}

type dragIn struct {
	StartTarget  string `json:"startTarget" required:"true" max:"4096" doc:"What to drag: a ref such as e12, or a CSS selector."`
	EndTarget    string `json:"endTarget" required:"true" max:"4096" doc:"Where to drop it, likewise."`
	StartElement string `json:"startElement,omitempty" max:"4096" hidden:"true"`
	EndElement   string `json:"endElement,omitempty" max:"4096" hidden:"true"`
	patience
	session
}

func drag(ctx context.Context, c *call, in *dragIn) (string, *clicked, error) {
	from, to := element{Target: in.StartTarget}, element{Target: in.EndTarget}
	req := api.DragRequest{Target: api.Target{Element: from.element()}, To: &api.Target{Element: to.element()}, Patience: in.wait(), Look: outlined()}
	done, s, err := act(ctx, c, in.SessionID,
		func(client *api.Client) (*api.DragAnswer, error) { return client.Drag(ctx, in.SessionID, req) },
		func(a *api.DragAnswer) *api.Acted { return &a.Acted })
	if err != nil {
		return "", nil, err
	}
	return sentence("Dragged"+effect(done.Effect), s.Page.words), &clicked{done.Strategy, done.Effect, s}, nil
}

type typeIn struct {
	element
	Text       secret.Text `json:"text,omitzero" max:"100000" doc:"What to type."`
	Submit     bool        `json:"submit,omitempty" doc:"Press Enter afterwards."`
	Slowly     bool        `json:"slowly,omitempty" hidden:"true"` // ours always types as a person does
	Clear      *bool       `json:"clear,omitempty" doc:"false adds to what is in the field."`
	ApprovalID string      `json:"approval_id,omitempty" max:"64" hidden:"true" doc:"Of oc_approval_request, where submit pays."`
	patience
	session
}

type typed struct {
	Characters int    `json:"characters" doc:"How many were typed."`
	Field      string `json:"field,omitempty" doc:"The kind of the field."`
	shown
}

func typing(ctx context.Context, c *call, in *typeIn) (string, *typed, error) {
	req := api.TypeRequest{Text: in.Text, Element: in.element.element(), Submit: in.Submit, Paying: api.Paying{ApprovalID: in.ApprovalID}, Patience: in.wait(), Look: outlined()}
	// A field that is named is filled anew, as elsewhere; the one with the focus
	// is where somebody is writing.
	req.Clear = req.Given() && !in.Slowly
	if in.Clear != nil {
		req.Clear = *in.Clear
	}
	if err := req.Check(); err != nil {
		return "", nil, named(err)
	}
	done, s, err := act(ctx, c, in.SessionID,
		func(client *api.Client) (*api.TypeAnswer, error) { return client.Type(ctx, in.SessionID, req) },
		func(a *api.TypeAnswer) *api.Acted { return &a.Acted })
	if err != nil {
		return "", nil, err
	}
	return sentence(fmt.Sprintf("Typed %d characters.", done.Characters), s.Page.words), &typed{done.Characters, done.Field, s}, nil
}

type fillIn struct {
	Fields []fieldIn `json:"fields" required:"true" doc:"The fields, filled in this order."`
	patience
	session
}

type fieldIn struct {
	element
	Type       string       `json:"type,omitempty" max:"64" hidden:"true"` // ours sees what it is
	Value      *secret.Text `json:"value,omitempty" max:"100000" doc:"What it shall hold: a text, a date, an option's text, true or false."`
	Credential string       `json:"credential,omitempty" max:"253" doc:"Instead of value: the name of a credential that the owner keeps. You never see it."`
	Part       string       `json:"part,omitempty" enum:"password,username,totp" doc:"Of the credential; password without it."`
}

type filled struct {
	Filled int `json:"filled" doc:"How many fields hold their value now."`
	shown
}

func fillForm(ctx context.Context, c *call, in *fillIn) (string, *filled, error) {
	req := api.FillRequest{Patience: in.wait(), Look: outlined()}
	for _, f := range in.Fields {
		at := f.element.element()
		if !at.Given() {
			// Others call a field by a name for people, which is what its label is.
			at.Label = f.Name
			if at.Label == "" {
				at.Label = f.element.Element
			}
		}
		req.Fields = append(req.Fields, api.FieldValue{Element: at, Value: f.Value, Credential: f.Credential, Part: f.Part})
	}
	if err := req.Check(); err != nil {
		return "", nil, named(err)
	}
	done, s, err := act(ctx, c, in.SessionID,
		func(client *api.Client) (*api.FillAnswer, error) { return client.Fill(ctx, in.SessionID, req) },
		func(a *api.FillAnswer) *api.Acted { return &a.Acted })
	if err != nil {
		return "", nil, err
	}
	return sentence(fmt.Sprintf("Filled %d of %d fields.", done.Filled, len(req.Fields)), s.Page.words), &filled{done.Filled, s}, nil
}

type pressIn struct {
	Key        string `json:"key" required:"true" max:"64" doc:"A key such as Enter, or a combination such as Control+A."`
	ApprovalID string `json:"approval_id,omitempty" max:"64" hidden:"true" doc:"Of oc_approval_request, where this pays."`
	session
}

func pressKey(ctx context.Context, c *call, in *pressIn) (string, *shown, error) {
	return plainly(ctx, c, in.SessionID, "Pressed.", func(client *api.Client) (*api.Acted, error) {
		return client.Press(ctx, in.SessionID, api.PressRequest{Key: in.Key, Paying: api.Paying{ApprovalID: in.ApprovalID}, Look: outlined()})
	})
}

type selectIn struct {
	element
	Values []string `json:"values" required:"true" max:"4096" doc:"Values or visible texts of the options."`
	patience
	session
}

type selected struct {
	Selected int `json:"selected" doc:"How many options are chosen now."`
	shown
}

func selectOption(ctx context.Context, c *call, in *selectIn) (string, *selected, error) {
	at, err := in.one()
	if err != nil {
		return "", nil, err
	}
	req := api.SelectRequest{Element: at, Values: in.Values, Patience: in.wait(), Look: outlined()}
	done, s, err := act(ctx, c, in.SessionID,
		func(client *api.Client) (*api.SelectAnswer, error) { return client.Select(ctx, in.SessionID, req) },
		func(a *api.SelectAnswer) *api.Acted { return &a.Acted })
	if err != nil {
		return "", nil, err
	}
	return sentence(fmt.Sprintf("%d chosen.", len(done.Selected)), s.Page.words), &selected{len(done.Selected), s}, nil
}

type uploadIn struct {
	element
	Files []string `json:"files,omitempty" max:"4096" doc:"Paths in the uploads folder."`
	patience
	session
}

type uploaded struct {
	Files int `json:"files"`
	shown
}

func upload(ctx context.Context, c *call, in *uploadIn) (string, *uploaded, error) {
	req := api.UploadRequest{Element: in.element.element(), Files: in.Files, Patience: in.wait(), Look: outlined()}
	if req.Files == nil {
		req.Files = []string{}
	}
	if err := req.Check(); err != nil {
		return "", nil, named(err)
	}
	done, s, err := act(ctx, c, in.SessionID,
		func(client *api.Client) (*api.UploadAnswer, error) { return client.Upload(ctx, in.SessionID, req) },
		func(a *api.UploadAnswer) *api.Acted { return &a.Acted })
	if err != nil {
		return "", nil, err
	}
	return sentence(fmt.Sprintf("Gave %d files to the page.", done.Files), s.Page.words), &uploaded{done.Files, s}, nil
}

type dialogIn struct {
	Accept     *bool       `json:"accept" required:"true" doc:"true is OK or Allow, false is Cancel or Deny."`
	PromptText secret.Text `json:"promptText,omitzero" max:"100000" doc:"The answer to a prompt."`
	ApprovalID string      `json:"approval_id,omitempty" max:"64" hidden:"true" doc:"Of oc_approval_request, where this pays."`
	session
}

func handleDialog(ctx context.Context, c *call, in *dialogIn) (string, *shown, error) {
	words, out, err := plainly(ctx, c, in.SessionID, "Answered.", func(client *api.Client) (*api.Acted, error) {
		return client.Dialog(ctx, in.SessionID, api.DialogRequest{Accept: in.Accept, Text: in.PromptText, Paying: api.Paying{ApprovalID: in.ApprovalID}, Look: outlined()})
	})
	if err == nil || !errors.Is(err, fault.NotFound) {
		return words, out, err
	}
	now, statusErr := ask(ctx, c.line, func(client *api.Client) (*api.Status, error) { return client.Status(ctx, in.SessionID) })
	if statusErr != nil {
		return "", nil, err
	}
	for _, q := range now.Questions {
		if q.Kind == "permission" {
			return plainly(ctx, c, in.SessionID, "Answered.", func(client *api.Client) (*api.Acted, error) {
				return client.Permission(ctx, in.SessionID, api.PermissionRequest{Name: q.Name, Grant: in.Accept, Origin: q.Origin, Look: outlined()})
			})
		}
	}
	return "", nil, err
}
