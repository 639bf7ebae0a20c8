package handoff

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
)

func (r *Room) photoFile(id string) string { return r.archive.File(id, "photo.age") }

// photo is the picture for the message, as it is sealed.
type photo struct {
	Format page.Format `json:"format"`
	Base64 string      `json:"base64"`
}

// keepPictures keeps the picture taken as the gate closed: sealed until it is
// delivered, and open beside the snapshot if that was asked for. A picture that
// cannot be kept is no reason not to call a person.
func (r *Room) keepPictures(rec *Record, o StartOptions, shot *page.Image) {
	if shot == nil {
		return
	}
	if o.Capture {
		rec.Before.ScreenshotRef = r.keepPicture(rec.ID, "before", shot)
	}
	if o.Silent {
		return
	}
	plain, err := json.Marshal(photo{shot.Format, shot.Base64})
	var sealed []byte
	if err == nil {
		sealed, err = r.deps.Sealer.Seal(r.photoFile(rec.ID), rec.Before.Origin, plain)
	}
	if err == nil {
		err = r.deps.Home.Write(r.photoFile(rec.ID), sealed)
	}
	if err != nil {
		r.log.Warn("the picture for the message could not be kept", "handoff", rec.ID, "error", err)
		return
	}
	rec.Book.HasPhoto = true
}

// keepPicture writes a picture beside the record and returns its name.
func (r *Room) keepPicture(id, when string, shot *page.Image) string {
	raw, err := base64.StdEncoding.DecodeString(shot.Base64)
	name := r.archive.File(id, when+"."+string(shot.Format))
	if err == nil {
		err = r.deps.Home.Write(name, raw)
	}
	if err != nil {
		r.log.Warn("a picture could not be kept", "handoff", id, "error", err)
		return ""
	}
	return name
}

// Photo hands out the picture for the message, once: it is gone from the disk
// before it is given away.
func (r *Room) Photo(_ context.Context, id string) (shot page.Image, err error) {
	began := time.Now()
	_, rec, err := r.find(id)
	defer func() { r.journal(began, Owner, "handoff.photo", rec, err) }()
	if err != nil {
		return page.Image{}, err
	}
	none := fault.New(fault.NotFound, "", "there is no photo, or it was delivered").
		WithHint("POST /handoff/%s/screenshot takes a new one while the hand-off runs.", id)
	sealed, err := r.deps.Home.Read(r.photoFile(id))
	if err == nil {
		err = r.deps.Home.Remove(r.photoFile(id))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return page.Image{}, none
	}
	if err != nil {
		return page.Image{}, err
	}
	plain, err := r.deps.Sealer.Open(r.photoFile(id), rec.Before.Origin, sealed)
	if err != nil {
		return page.Image{}, err
	}
	var p photo
	if err := json.Unmarshal(plain, &p); err != nil {
		return page.Image{}, none
	}
	return page.Image{Format: p.Format, Base64: p.Base64}, nil
}

// concealed are texts after the secret rules: as the page concealed them with
// what stands in its fields, and by their looks in any case.
func concealed(texts, byPage []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		if len(byPage) == len(texts) {
			text = byPage[i]
		}
		out[i] = secret.Conceal(text)
	}
	return out
}
