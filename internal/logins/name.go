package logins

import (
	"regexp"
	"strings"

	"tapin/internal/fault"
)

// A name is the name of a file too: one flat folder, no hidden files, nothing
// that a shell, a URL or YAML would read as something else.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-]$|^[A-Za-z0-9_]$`)

// CheckName refuses what cannot be the name of a login.
func CheckName(name string) error {
	if nameForm.MatchString(name) && !strings.Contains(name, "..") {
		return nil
	}
	return fault.New(fault.InvalidRequest, "", "that cannot be the name of a login").
		WithHint("Use up to 64 letters, digits, dots, dashes and underscores, such as chase or chase-business.")
}

// clashing returns the name that a file system without upper and lower case
// takes for the same, or "".
func clashing(name string, taken []string) string {
	for _, other := range taken {
		if other != name && strings.EqualFold(other, name) {
			return other
		}
	}
	return ""
}

func clash(name, other string) error {
	return fault.New(fault.InvalidRequest, "", "the login %q differs from %q in upper and lower case alone", name, other).
		WithHint("Use %s, or a name of its own.", other)
}

// The files of a login. No file of one can be a file of another: each kind
// has an ending of its own, and the name is all that stands before it.
func sealedFile(name string) string   { return folder + "/" + name + ".age" }
func previousFile(name string) string { return folder + "/" + name + ".age.1" }
func recordFile(name string) string   { return folder + "/" + name + ".json" }
