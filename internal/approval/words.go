package approval

import (
	"fmt"
	"net/url"
	"strings"

	"tapin/internal/money"
	"tapin/internal/page"
	"tapin/internal/site"
)

// readingOf keeps of a page's totals what an approval is about.
func readingOf(t page.Totals, q Request) Reading {
	out := Reading{
		Origin: t.Origin, Decision: t.Decision, Label: t.Label, Certain: t.Certain, Larger: t.Larger, Echoed: t.Echoed, Foreign: t.Foreign,
		SiteSeen: site.Same(t.Origin, q.Site),
	}
	if t.Decision == page.TotalRead {
		sum := SumOf(t.Total)
		out.Total = &sum
	}
	for _, c := range t.Seen {
		if c.Amount.Currency != "" {
			out.Seen = append(out.Seen, SumOf(c.Amount))
		}
	}
	out.PayeeSeen = len(t.Named) > 0 && t.Named[0] || belongs(q.Payee, t.Origin)
	return out
}

// belongs reports whether a payee is the site itself: Verizon at verizon.com.
func belongs(payee, origin string) bool {
	at, err := site.Of(origin)
	if err != nil {
		return false
	}
	name, _, _ := strings.Cut(string(at), ".")
	squash := strings.NewReplacer(" ", "", "-", "", "&", "", ".", "", "'", "")
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(payee)), " ")
	return len(name) > 2 && (squash.Replace(strings.ToLower(payee)) == squash.Replace(name) || first == name)
}

// differences are where the agent's words and the page are not the same, for
// the owner to see before anything else.
func differences(rec Record) []string {
	var out []string
	read := rec.Reading
	if !read.SiteSeen {
		out = append(out, fmt.Sprintf("The agent says %s; the page is of %s.", rec.Site, hostOf(read.Origin)))
	}
	switch {
	case rec.Disputed():
		out = append(out, fmt.Sprintf("The agent says %s; the page shows %s.", rec.Claim.Money(), read.Total.Money()))
	case read.Decision == page.TotalAmbiguous:
		out = append(out, "The page shows more than one total: "+sums(read.Seen)+".")
	case read.Total == nil:
		out = append(out, "No total could be read on the page.")
	}
	if !read.PayeeSeen {
		out = append(out, fmt.Sprintf("The page does not name %s.", rec.Payee))
	}
	return out
}

func sums(all []Sum) string {
	var out []string
	for _, s := range all {
		out = append(out, s.Money().String())
	}
	return strings.Join(out, ", ")
}

func hostOf(origin string) string {
	if u, err := url.Parse(origin); err == nil && u.Host != "" {
		return u.Host
	}
	return "no site"
}

// what names the payment: the description if there is one, else the payee.
func (r Record) what() string {
	if r.Description != "" {
		return r.Description
	}
	return r.Payee
}

// Question is what the owner is asked.
func (r Record) Question() string {
	return fmt.Sprintf("%s is %s — okay to confirm?", r.what(), r.Claim.Money())
}

// Notice is what the owner is told afterwards; "" while there is nothing to tell.
func (r Record) Notice() string {
	var sum money.Amount
	if r.Granted != nil {
		sum = r.Granted.Money()
	}
	switch {
	case r.Status == Used && r.Outcome == OutcomeConfirmed:
		return fmt.Sprintf("Paid %s — %s.", r.what(), sum)
	case r.Status == Used && r.Outcome == OutcomeUnknown:
		return fmt.Sprintf("%s — %s may have been paid: nobody saw how the click ended. It is not tried again.", r.what(), sum)
	case r.Status == Used && r.Outcome == OutcomeNone:
		return fmt.Sprintf("%s — %s was not paid: the click did not arrive. A new approval is needed.", r.what(), sum)
	case r.Status == Denied:
		return fmt.Sprintf("%s — not paid, as you said.", r.what())
	case r.Status == Expired:
		return fmt.Sprintf("%s — not paid: the time was over.", r.what())
	}
	return ""
}
