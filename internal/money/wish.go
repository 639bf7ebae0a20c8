package money

import (
	"fmt"
	"strings"
	"time"
)

// Kind is what an owner wants of the standing approvals.
type Kind string

// The kinds of wishes.
const (
	Allow Kind = "allow" // approve by yourself, within limits
	Stop  Kind = "stop"  // ask me again
	Tell  Kind = "tell"  // what do you approve by yourself?
)

// Wish is what an owner said about payments, as far as it is understood. It is
// a proposal: nothing comes of it before it is read back and confirmed.
type Wish struct {
	Kind    Kind
	Site    string    // as said: a login's name or a domain; "" with Stop means all
	Max     Amount    // of one payment
	Monthly Amount    // of a calendar month; zero means no budget
	Until   time.Time // from which moment on it ends; zero means never
}

// Unclear says that a sentence is about payments and what is missing in it. It
// is a sentence for the owner.
type Unclear struct{ Ask string }

func (u *Unclear) Error() string { return u.Ask }

// The pieces of a limit: how it begins, what makes it one, and its sum.
const (
	lead   = `(?:^|[,;] ?| )(?:and |but )?`
	atMost = `up to|at most|max(?:imum)?(?: of)?|no more than|not more than|under|below`
	sum    = `(\S{1,20}(?: (?:dollars?|euros?|pounds|bucks|quid|yen|rupees|francs|franken|yuan|reais|kr|[a-z]{3}|€|[\d.,\']+))?)`
)

var (
	wishTell = lazily(`^(?:please )?(?:(?:what|which) (?:payments |sites |things )?(?:do|can|will|would|may) you (?:currently )?(?:auto-?approve|approve|pay)(?: (?:by yourself|on your own|automatically|alone|without asking(?: me)?))?|what is auto-?approved|(?:list|show)(?: me)?(?: (?:the|my|all))? (?:policies|standing approvals|auto-?approvals)|policies)$`)
	wishStop = lazily(`^(?:please )?(?:(?:stop|no more|cancel|revoke|remove|never|do not|don't|dont) (?:auto-?approv(?:e|ing|al|als)|approving automatically|paying)(?: (?:of|for|on|at))?|ask me (?:again )?(?:about|before paying)) (.+?)(?: (?:any ?more|again|any longer|payments?|bills?|automatically))*$`)
	wishGo   = lazily(`^(?:please )?(?:auto-?approve|automatically approve|always approve|you may pay|you can pay) (.+)$`)

	limitMonth = lazily(lead + `(?:(?:with )?(?:` + atMost + `|a budget of|budget|for) (?:a total of )?` + sum + ` ?(?:a|per|each|every|/) ?month(?: in total)?|(?:with )?(?:a )?monthly (?:budget|limit|maximum)(?: of)? ` + sum + `)$`)
	limitEach  = lazily(lead + `(?:if )?(?:it is |it's )?(?:` + atMost + `|less than|<=?) ` + sum + `(?: (?:a|per|each|every) (?:payment|bill|time|purchase)| each)?$`)
	limitUntil = lazily(lead + `(?:only )?(?:until|till|through|before|up until|for(?: the next)?) (.{1,32})$`)
	siteTail   = lazily(`(?: (?:payments?|bills?|invoices?|purchases|orders|charges|subscriptions?))+$`)
	spaces     = lazily(`\s+`)
)

const maxWish = 300

// ParseWish reads a sentence of an owner's. ok is false when it is about
// something else, and then it is nobody's business here. An error of type
// *Unclear says what is missing. Months and days are those of now's place.
func ParseWish(text string, now time.Time) (w Wish, ok bool, err error) {
	if len(text) > maxWish {
		return Wish{}, false, nil
	}
	said := strings.TrimSpace(spaces().ReplaceAllString(strings.ToLower(strings.NewReplacer("’", "'", "‑", "-", "–", "-").Replace(text)), " "))
	said = strings.TrimRight(said, ".!?")
	said = strings.NewReplacer("auto approv", "auto-approv", "autoapprov", "auto-approv").Replace(said)
	switch {
	case wishTell().MatchString(said):
		return Wish{Kind: Tell}, true, nil
	case wishStop().MatchString(said):
		name := siteName(wishStop().FindStringSubmatch(said)[1])
		if name == "everything" || name == "anything" || name == "all" || name == "all of them" {
			name = ""
		} else if err := checkSite(name); err != nil {
			return Wish{}, true, err
		}
		return Wish{Kind: Stop, Site: name}, true, nil
	case wishGo().MatchString(said):
		w, err := allow(wishGo().FindStringSubmatch(said)[1], now)
		return w, true, err
	}
	return Wish{}, false, nil
}

// allow takes the limits off the end of a sentence, one after the other; what
// is left is the site.
func allow(rest string, now time.Time) (Wish, error) {
	w := Wish{Kind: Allow}
	for taken := true; taken; {
		var err error
		taken = false
		if at := limitUntil().FindStringSubmatchIndex(rest); at != nil && w.Until.IsZero() {
			if until, ok := untilWhen(rest[at[2]:at[3]], now); ok {
				if !until.After(now) {
					return w, &Unclear{"That day is over already. Until when may I approve these?"}
				}
				w.Until, rest, taken = until, rest[:at[0]], true
				continue
			}
		}
		if at := limitMonth().FindStringSubmatchIndex(rest); at != nil && w.Monthly.IsZero() {
			from, to := at[2], at[3]
			if from < 0 {
				from, to = at[4], at[5]
			}
			if w.Monthly, err = limit(rest[from:to]); err != nil {
				return w, err
			}
			rest, taken = rest[:at[0]], true
			continue
		}
		if at := limitEach().FindStringSubmatchIndex(rest); at != nil && w.Max.IsZero() {
			if w.Max, err = limit(rest[at[2]:at[3]]); err != nil {
				return w, err
			}
			rest, taken = rest[:at[0]], true
		}
	}
	w.Site = siteName(rest)
	switch err := checkSite(w.Site); {
	case err != nil:
		return w, err
	case w.Max.IsZero() && w.Monthly.IsZero():
		return w, &Unclear{fmt.Sprintf("Up to how much for %s? Say for example: auto-approve %s up to $200.", w.Site, w.Site)}
	case w.Max.IsZero():
		w.Max = w.Monthly
	case !w.Monthly.IsZero() && w.Monthly.Currency != w.Max.Currency:
		return w, &Unclear{"The limit and the month's budget are in different currencies. Which one is it?"}
	case !w.Monthly.IsZero() && w.Monthly.Minor < w.Max.Minor:
		w.Max = w.Monthly
	}
	return w, nil
}

func limit(text string) (Amount, error) {
	a, err := Parse(strings.ToUpper(text))
	if err != nil {
		a, err = Parse(text)
	}
	if err != nil || a.IsZero() {
		return Amount{}, &Unclear{fmt.Sprintf("I do not understand %q as an amount. Write it with its currency, such as $200 or 150 EUR.", clip(text))}
	}
	return a, nil
}

func siteName(s string) string {
	s = strings.Trim(s, " ,;")
	for _, article := range []string{"payments to ", "payments at ", "payments on ", "payments for ", "bills from ", "my ", "the ", "any "} {
		s = strings.TrimPrefix(s, article)
	}
	s = strings.TrimSpace(siteTail().ReplaceAllString(s, ""))
	return strings.TrimSuffix(s, "'s")
}

var siteForm = lazily(`^[\p{L}\p{N}][\p{L}\p{N}._\-]*(?: [\p{L}\p{N}._&\-]+){0,3}$`)

// checkSite refuses names that are rather the rest of a sentence: nothing that
// was not understood may be dropped from a wish about money.
func checkSite(name string) error {
	if len(name) > 64 || !siteForm().MatchString(name) || len(Find(strings.ToUpper(name))) > 0 {
		return &Unclear{"I did not understand all of that. Say for example: auto-approve verizon up to $200 a payment and up to $300 a month until March."}
	}
	for word := range strings.FieldsSeq(name) {
		switch word {
		case "under", "until", "till", "below", "over", "above", "except", "unless", "if", "when", "month", "week", "not", "up", "than", "per", "and", "or",
			"everything", "anything", "all", "year", "day", "weekly", "monthly", "yearly", "max", "maximum", "budget":
			return &Unclear{fmt.Sprintf("I did not understand %q. Say which site, how much at most, and until when.", clip(name))}
		}
	}
	return nil
}

// Sentence reads a wish back, so that whoever said it can see what was heard.
func (w Wish) Sentence() string {
	switch w.Kind {
	case Tell:
		return "What do you approve by yourself?"
	case Stop:
		if w.Site == "" {
			return "Stop auto-approving everything."
		}
		return "Stop auto-approving " + w.Site + "."
	}
	s := fmt.Sprintf("Auto-approve %s up to %s a payment", w.Site, w.Max)
	if !w.Monthly.IsZero() {
		s += fmt.Sprintf(" and up to %s a month", w.Monthly)
	}
	if !w.Until.IsZero() {
		s += " until " + w.Until.Format("2 January 2006")
	}
	return s + "."
}
