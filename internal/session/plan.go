package session

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/page"
)

// The bounds of what a start may ask for.
const (
	minTimeout = 10 * time.Second
	maxTimeout = 6 * time.Hour
	minSide    = 200
	maxSide    = 4096
	maxScale   = 4
)

// plan is a start that was found to make sense.
type plan struct {
	look    page.Look
	timeout time.Duration
}

var localeForm = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)

// plan checks everything that can be checked before anything is done.
func (h *Host) plan(o StartOptions) (plan, error) {
	const op = "start a session"
	if o.URL != "" {
		if err := egress.CheckURL(o.URL, h.rules); err != nil {
			return plan{}, err
		}
	}
	if o.Context != "" && h.deps.Saved == nil {
		return plan{}, fault.New(fault.Disabled, op, "logins are not saved here").WithHint("Start without context.")
	}
	p := plan{look: h.opts.Look, timeout: h.opts.Timeout}
	p.look.Mobile = p.look.Mobile || o.Mobile
	if v := o.Viewport; v != nil {
		if v.Width < minSide || v.Width > maxSide || v.Height < minSide || v.Height > maxSide || v.Scale < 0 || v.Scale > maxScale {
			return plan{}, fault.New(fault.InvalidRequest, op, "a viewport of %d×%d at scale %g is out of bounds", v.Width, v.Height, v.Scale).
				WithHint("Width and height are from %d to %d, scale up to %d.", minSide, maxSide, maxScale)
		}
		p.look.Width, p.look.Height, p.look.Scale = v.Width, v.Height, v.Scale
	}
	if o.Locale != "" {
		if !localeForm.MatchString(o.Locale) {
			return plan{}, fault.New(fault.InvalidRequest, op, "%q is no locale", o.Locale).WithHint("Write it like en-GB.")
		}
		p.look.Locale = o.Locale
	}
	if o.Timezone != "" {
		if _, err := time.LoadLocation(o.Timezone); err != nil || o.Timezone == "Local" {
			return plan{}, fault.New(fault.InvalidRequest, op, "%q is no time zone", o.Timezone).WithHint("Write it like Europe/London.")
		}
		p.look.Timezone = o.Timezone
	}
	if o.Timeout != 0 {
		if o.Timeout < minTimeout || o.Timeout > maxTimeout {
			return plan{}, fault.New(fault.InvalidRequest, op, "a session of %s is out of bounds", o.Timeout).
				WithHint("timeout_s is from %d to %d.", int(minTimeout.Seconds()), int(maxTimeout.Seconds()))
		}
		p.timeout = o.Timeout
	}
	return p, nil
}

func sortInfos(infos []Info) {
	slices.SortFunc(infos, func(a, b Info) int {
		if c := a.StartedAt.Compare(b.StartedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}
