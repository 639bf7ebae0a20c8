package page

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"tapin/internal/money"
	"tapin/internal/site"
)

// What a reading of a page's sums comes to.
const (
	TotalRead      = "total"
	TotalAmbiguous = "ambiguous"
	TotalNone      = "none"
)

// Totals is what a page says is to be paid, read where nobody can type.
type Totals struct {
	Origin   string       // of the page; frames do not change it
	Decision string       // total, ambiguous or none
	Total    money.Amount // zero unless decided
	Label    string       // what stands beside it
	Certain  bool         // no other currency is as likely
	Larger   bool         // a larger total, or one in another currency, is visible too
	Echoed   bool         // it stands in the address as well: whoever led here may have put it there
	Foreign  bool         // only a frame of another site shows it
	Seen     []Candidate  // everything that is called a total
	Named    []bool       // of the names that were asked for, which the page shows

	box   *rect // on the page, in CSS pixels
	frame frame
}

// Candidate is one sum that is called a total.
type Candidate struct {
	Amount money.Amount
	Label  string
	rank   int
}

// sums is one document's answer.
type sums struct {
	Origin   string    `json:"origin"`
	Host     string    `json:"host"`
	Language string    `json:"language"`
	Sums     []sumLine `json:"sums"`
	Payer    bool      `json:"payer"`     // something on it pays
	Aside    bool      `json:"elsewhere"` // its heading says that it is about something else
	Named    []bool    `json:"names"`

	frame frame
}

type sumLine struct {
	Text   string `json:"text"`
	Label  string `json:"label"`
	Echo   string `json:"echo"`
	Button bool   `json:"button"` // it stands on the button that takes it
	Beside bool   `json:"beside"` // or alone with it
	Chosen bool   `json:"chosen"` // or on what was chosen of several
	Bold   bool   `json:"bold"`   // none is written larger
	Box    rect   `json:"box"`
}

// claim is a sum in a document on its way to becoming the total.
type claim struct {
	Candidate
	certain, echoed, foreign, unread, vague bool
	adds                                    bool // the sums before it come to it
	box                                     rect
	frame                                   frame
}

// rankOf is how surely a label speaks of the total; -1 means that it does not.
func rankOf(label string) int {
	label = strings.ToLower(strings.Join(strings.Fields(label), " "))
	if totalNever().MatchString(label) {
		return -1
	}
	part := totalParts().FindStringIndex(label)
	for rank, r := range totalRanks {
		if at := r().FindStringIndex(label); at != nil && (part == nil || at[0] <= part[0]) {
			return rank
		}
	}
	return -1
}

// Below the words that name a total stands what shows it without them, on a page
// that takes money: the sums before it come to it, it stands alone with the
// button, or on what was chosen, or none is written larger.
const (
	rankAdds = 100 + iota
	rankBeside
	rankChosen
	rankBold
)

// claims are the sums of a document that are to be paid, by their names or by
// how they stand there.
func (d sums) claims(foreign bool) []claim {
	var out []claim
	region := regionOf(d.Language, d.Host)
	if d.Aside && !d.Payer { // what it calls a total is past, or a plan
		return nil
	}
	var bill bill
	for _, line := range d.Sums {
		if line.Echo == "field" {
			continue
		}
		found := money.Find(line.Text)
		for i, s := range found {
			label := line.labelOf(found, i)
			low := strings.ToLower(label)
			a, certain := s.In(region)
			adds := bill.comesTo(a, s.Negative || lessens().MatchString(low))
			rank := rankOf(label)
			if rank < 0 && line.Label != "" && !totalParts().MatchString(low) {
				label = line.Label + " " + label // 0.0125 BTC ≈ $1,104.20
				rank = rankOf(label)
			}
			if line.Button {
				rank = 0
			}
			if rank < 0 && len(found) == 1 && a.Minor > 0 && !totalNever().MatchString(low) {
				rank = d.unnamed(line, adds && !totalParts().MatchString(low))
			}
			behind := strings.ToLower(line.behind(found, i))
			if rank < 0 || s.Negative || a.Minor == 0 && !d.Payer || bygone().MatchString(strings.ToLower(label)+" "+behind) || givenBack().MatchString(behind) {
				continue
			}
			out = append(out, claim{
				Candidate: Candidate{a, shortTo(strings.TrimSpace(label), 80), rank},
				certain:   certain, echoed: line.Echo == "address", foreign: foreign, unread: len(s.Amounts) == 0, vague: s.Vague,
				adds: adds, box: line.Box, frame: d.frame,
			})
		}
	}
	return out
}

// unnamed ranks a sum that nothing calls a total; -1 means that it is none.
func (d sums) unnamed(line sumLine, adds bool) int {
	switch {
	case adds && d.Payer:
		return rankAdds
	case line.Beside:
		return rankBeside
	case line.Chosen && d.Payer:
		return rankChosen
	case line.Bold && d.Payer && !totalParts().MatchString(strings.ToLower(line.Label)):
		return rankBold
	}
	return -1
}

// bill is the sums of a document, one after the other.
type bill []money.Amount

// longestBill is how many sums are added up.
const longestBill = 12

// comesTo puts a sum behind the others and tells whether some right before it
// come to it.
func (b *bill) comesTo(a money.Amount, less bool) bool {
	is := false
	sum := int64(0)
	for i, n := len(*b)-1, 1; i >= 0 && n <= longestBill && (*b)[i].Currency == a.Currency; i, n = i-1, n+1 {
		sum += (*b)[i].Minor
		is = is || n > 1 && sum == a.Minor && a.Minor > 0
	}
	if less {
		a.Minor = -a.Minor
	}
	*b = append(*b, a)
	return is && !less
}

const (
	prose  = 120 // a line with more is running text
	nearby = 32  // and there only what is this near to a sum says what it is
)

// labelOf is what is said of a sum of the line: before it, else beside the line,
// else behind it.
func (l sumLine) labelOf(found []money.Sighting, i int) string {
	from := 0
	if i > 0 {
		from = found[i-1].End
	}
	label := strings.TrimSpace(l.Text[from:found[i].Start])
	if utf8.RuneCountInString(l.Text) >= prose {
		if r := []rune(label); len(r) > nearby {
			label = string(r[len(r)-nearby:])
		}
	}
	if open := strings.LastIndexByte(label, '('); open >= 0 && !strings.Contains(label[open:], ")") {
		label = label[open+1:] // Total (incl. VAT 19.14)
	} else if shut := strings.IndexByte(label, ')'); i > 0 && shut >= 0 && open < 0 {
		label = l.Text[:found[0].Start] + label[shut+1:]
	}
	if letters(label) >= 3 {
		if strings.HasPrefix(strings.TrimSpace(l.Text[found[i].End:]), "today") {
			label += " today"
		}
		return label
	}
	if letters(l.Label) >= 2 {
		return l.Label
	}
	return l.behind(found, i) // $25 due today
}

// behind is what follows a sum, up to the next.
func (l sumLine) behind(found []money.Sighting, i int) string {
	to := len(l.Text)
	if i+1 < len(found) {
		to = found[i+1].Start
	}
	r := []rune(l.Text[found[i].End:to])
	return string(r[:min(len(r), nearby)])
}

// letters counts those of a label; one of a script without spaces is a word.
func letters(s string) int {
	n := 0
	for _, r := range s {
		if r > '9' && (r < ':' || r > '@') && r != '€' && r != '£' && r != '¥' && r != money.Joint {
			n++
			if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
				n++
			}
		}
	}
	return n
}

// totalOf decides what the documents of a page say is to be paid. The first
// one is the page itself.
func totalOf(docs []sums) Totals {
	t := Totals{Decision: TotalNone}
	if len(docs) == 0 {
		return t
	}
	t.Origin = docs[0].Origin
	var own, others []claim
	for _, d := range docs {
		foreign := !site.Same(d.Origin, t.Origin) && d.Origin != "null" && d.Origin != t.Origin
		if d.Origin == "null" && d.frame.id != docs[0].frame.id {
			foreign = true // who knows whose it is
		}
		if foreign {
			others = append(others, d.claims(true)...)
		} else {
			own = append(own, d.claims(false)...)
		}
		for i, named := range d.Named {
			if i >= len(t.Named) {
				t.Named = append(t.Named, false)
			}
			t.Named[i] = t.Named[i] || named && !foreign
		}
	}
	for _, c := range append(slices.Clone(own), others...) {
		t.Seen = append(t.Seen, c.Candidate)
	}
	// What is called a total and not said exactly is in doubt, unless it is said elsewhere.
	exact := func(c claim) bool { return !c.vague }
	vague := slices.ContainsFunc(own, func(c claim) bool { return c.vague })
	own, others = only(own, exact), only(others, exact)
	from := own
	if len(from) == 0 && !vague {
		from, t.Foreign = others, len(others) > 0
	}
	best, ok := decide(from)
	if !ok {
		if len(from) > 0 || vague {
			t.Decision = TotalAmbiguous
		}
		return t
	}
	t.Decision, t.Total, t.Label, t.Certain = TotalRead, best.Amount, best.Label, best.certain
	t.box, t.frame = &best.box, best.frame
	for _, c := range append(own, others...) {
		if c.Amount == t.Total {
			t.Echoed = t.Echoed || c.echoed
		}
		if c.unread || c.Amount.Currency != t.Total.Currency || c.Amount.Minor > t.Total.Minor {
			t.Larger = true
		}
	}
	return t
}

func only(all []claim, is func(claim) bool) []claim {
	return slices.DeleteFunc(slices.Clone(all), func(c claim) bool { return !is(c) })
}

// decide takes the surest kind of claim. Of two that differ it takes the one
// that the sums before it come to; without that they decide nothing.
func decide(all []claim) (claim, bool) {
	var best *claim
	for i := range all {
		if c := &all[i]; best == nil || c.rank < best.rank {
			best = c
		}
	}
	if best == nil {
		return claim{}, false
	}
	rivals := only(all, func(c claim) bool { return c.rank == best.rank })
	if proven := only(rivals, func(c claim) bool { return c.adds }); !agree(rivals) && len(proven) > 0 {
		best, rivals = &proven[0], proven
	}
	if !agree(rivals) {
		return claim{}, false
	}
	// Nothing now and something later is no decision: it is the later that is paid.
	if best.Amount.Minor == 0 && slices.ContainsFunc(all, func(c claim) bool { return c.Amount.Minor != 0 }) {
		return claim{}, false
	}
	return *best, true
}

// agree tells whether claims say the same.
func agree(all []claim) bool {
	return !slices.ContainsFunc(all, func(c claim) bool { return c.Amount != all[0].Amount || c.unread })
}

// regionOf is where a page seems to be from: what its language says, else its domain.
func regionOf(lang, host string) string {
	if tag, err := language.Parse(lang); err == nil {
		if _, _, region := tag.Raw(); region.String() != "ZZ" {
			return region.String()
		}
		if base, _ := tag.Base(); base.String() == "ja" || base.String() == "zh" {
			region, _ := tag.Region()
			return region.String()
		}
	}
	at := strings.LastIndexByte(host, '.')
	if len(host)-at == 3 {
		code := strings.ToUpper(host[at+1:])
		if code == "UK" {
			code = "GB"
		}
		if region, err := language.ParseRegion(code); err == nil && region.IsCountry() && !slices.Contains([]string{"IO", "CO", "ME", "TV", "AI", "CC", "LY", "GG", "IS", "TO", "FM", "AM", "SH"}, code) {
			return code
		}
	}
	return ""
}
