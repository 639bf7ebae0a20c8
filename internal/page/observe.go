package page

// Observation is a page as a record may keep it: typed fields that hold nothing
// of what a person typed, and nothing that a query or a fragment carries.
// Title and key names have been through secret.Conceal.
type Observation struct {
	URL         string // without userinfo, query and fragment
	Origin      string
	Title       string
	Cookies     int // how many the browser would send to this page
	LocalKeys   []string
	SessionKeys []string
	Fingerprint string   // of the structure, keyed: nothing can be read back from it
	Concealed   []string // ObserveOptions.Conceal, concealed with the page's form values too
}

// ObserveOptions say how a page is observed.
type ObserveOptions struct {
	Key     []byte   // of this installation, for the fingerprint
	Conceal []string // other texts, about to be kept, that may repeat what stands in the page's fields
}

// Condition is something that is so or not so of a page; exactly one field is set.
type Condition struct {
	URL     string // the address contains it; * stands for anything
	Text    string // visible text
	Visible string // a selector of something that is visible
	Absent  string // a selector of which nothing is visible
}
