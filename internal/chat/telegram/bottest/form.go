package bottest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // what photos are
	_ "image/png"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxPhoto   = 10 << 20
	maxRequest = 50 << 20
)

// form is a request's fields, in whichever of the three ways they came.
type form struct {
	values map[string]string
	files  map[string][]byte
}

func readForm(r *http.Request) (*form, error) {
	f := &form{values: map[string]string{}, files: map[string][]byte{}}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	r.Body = http.MaxBytesReader(nil, r.Body, maxRequest)
	switch kind {
	case "application/json":
		var fields map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&fields); err != nil {
			return nil, err
		}
		for name, raw := range fields {
			var s string
			if json.Unmarshal(raw, &s) != nil {
				s = string(raw)
			}
			f.values[name] = s
		}
	case "multipart/form-data":
		parts, err := r.MultipartReader()
		if err != nil {
			return nil, err
		}
		for {
			p, err := parts.NextPart()
			if err == io.EOF { //nolint:errorlint // as documented
				return f, nil
			}
			if err != nil {
				return nil, err
			}
			raw, err := io.ReadAll(p)
			if err != nil {
				return nil, err
			}
			if p.FileName() != "" {
				f.files[p.FormName()] = raw
			} else {
				f.values[p.FormName()] = string(raw)
			}
		}
	case "", "application/x-www-form-urlencoded":
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		q, err := url.ParseQuery(string(raw))
		if err != nil {
			return nil, err
		}
		for name := range q {
			f.values[name] = q.Get(name)
		}
	default:
		return nil, fmt.Errorf("the content type %s is not accepted", kind)
	}
	return f, nil
}

type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
}

// text checks a text with its entities.
func (f *form) text(name, entities string, most int) (string, *refusal) {
	s := f.values[name]
	if f.values["parse_mode"] != "" {
		return "", bad("can't parse entities: this server takes entities alone")
	}
	if !utf8.ValidString(s) {
		return "", bad("strings must be encoded in UTF-8")
	}
	units := utf16.Encode([]rune(s))
	if len(units) > most {
		if name == "caption" {
			return "", bad("message caption is too long")
		}
		return "", bad("message is too long")
	}
	if raw := f.values[entities]; raw != "" {
		var all []entity
		if json.Unmarshal([]byte(raw), &all) != nil {
			return "", bad("can't parse entities")
		}
		for _, e := range all {
			if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > len(units) {
				return "", bad("entity beyond the end of the text")
			}
			if !slices.Contains([]string{"bold", "italic", "code", "text_link"}, e.Type) {
				return "", bad("unsupported entity %s", e.Type)
			}
			for _, edge := range []int{e.Offset, e.Offset + e.Length} {
				if edge < len(units) && utf16.IsSurrogate(rune(units[edge])) && units[edge] >= 0xdc00 {
					return "", bad("entity begins or ends inside a character")
				}
			}
		}
	}
	return s, nil
}

// keyboard checks inline buttons.
func (f *form) keyboard(private bool) ([]Button, *refusal) {
	raw := f.values["reply_markup"]
	if raw == "" {
		return nil, nil
	}
	var markup struct {
		Rows *[][]json.RawMessage `json:"inline_keyboard"`
	}
	in := json.NewDecoder(strings.NewReader(raw))
	in.DisallowUnknownFields()
	if err := in.Decode(&markup); err != nil || markup.Rows == nil {
		return nil, bad("object expected as reply markup")
	}
	var out []Button
	for _, row := range *markup.Rows {
		if len(row) == 0 || len(row) > 8 {
			return nil, bad("a row of %d buttons", len(row))
		}
		for _, one := range row {
			b, no := button(one, private)
			if no != nil {
				return nil, no
			}
			out = append(out, b)
		}
	}
	if len(out) > 100 {
		return nil, bad("too many buttons")
	}
	return out, nil
}

func button(raw json.RawMessage, private bool) (Button, *refusal) {
	var b Button
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if in.Decode(&b) != nil {
		return b, bad("can't parse inline keyboard button")
	}
	actions := 0
	for _, has := range []bool{b.Data != "", b.URL != "", b.WebApp != nil} {
		if has {
			actions++
		}
	}
	switch {
	case strings.TrimSpace(b.Text) == "":
		return b, bad("text buttons must have a text")
	case actions != 1:
		return b, bad("a button has %d actions", actions)
	case len(b.Data) > 64:
		return b, bad("BUTTON_DATA_INVALID")
	case b.WebApp != nil && !private:
		return b, bad("BUTTON_TYPE_INVALID")
	case b.WebApp != nil && !webURL(b.WebApp.URL, "https"):
		return b, bad("inline keyboard button Web App URL is invalid: Only HTTPS links are allowed")
	case b.URL != "" && !webURL(b.URL, "https", "http"):
		return b, bad("inline keyboard button URL is invalid: Wrong HTTP URL")
	}
	return b, nil
}

// webURL reports whether the real server would take an address for a button.
func webURL(s string, schemes ...string) bool {
	u, err := url.Parse(s)
	return err == nil && slices.Contains(schemes, u.Scheme) && strings.Contains(u.Hostname(), ".") && len(s) <= 2048
}

// photo checks a picture.
func (f *form) photo() ([]byte, *refusal) {
	raw := f.files["photo"]
	if len(raw) == 0 {
		return nil, bad("there is no photo in the request")
	}
	if len(raw) > maxPhoto {
		return nil, bad("file of size %d bytes is too big for a photo", len(raw))
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return nil, bad("IMAGE_PROCESS_FAILED")
	}
	if c.Width+c.Height > 10000 || max(c.Width, c.Height) > 20*min(c.Width, c.Height) {
		return nil, bad("PHOTO_INVALID_DIMENSIONS")
	}
	return raw, nil
}
