package config

import "strconv"

// Source is a kind of place that a value can come from, weakest first.
type Source int

// The sources, in the order in which they override each other.
const (
	FromDefault Source = iota
	FromFile
	FromEnv
	FromFlag
)

// Origin is where the value of one key came from.
type Origin struct {
	Source Source
	Name   string // the file, the variable or the flag
	Line   int    // in a file
	Column int
}

// String names the place: "default", "config.yaml:3", "TAPIN_PROVIDER", "--set provider".
func (o Origin) String() string {
	switch o.Source {
	case FromFile:
		return o.Name + ":" + strconv.Itoa(o.Line)
	case FromEnv, FromFlag:
		return o.Name
	}
	return "default"
}

// Origins tells for every key where its value came from.
type Origins struct{ byPath map[string]Origin }

// Of returns the origin of a key; what nobody set is a default.
func (o *Origins) Of(path string) Origin {
	if o == nil {
		return Origin{}
	}
	return o.byPath[path]
}
