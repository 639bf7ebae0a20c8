package layout_test

import (
	"testing"

	"tapin/internal/layout"
)

func TestEveryKindHasItsCare(t *testing.T) {
	t.Parallel()
	for _, k := range layout.Kinds() {
		if _, ok := layout.ForgettingOf(k); !ok {
			t.Errorf("nobody has decided what becomes of %s (%s) when a site is forgotten", k.Name, k.Pattern)
		}
		care, ok := layout.CareOf(k)
		if !ok || !care.Carried && care.Why == "" {
			t.Errorf("nobody has decided whether a backup carries %s (%s)", k.Name, k.Pattern)
		}
	}
	for name, want := range map[string]bool{
		"contexts/bank.age": true, "contexts/bank.age.damaged-20261119T170340.123Z": true, "notes of mine.txt": true, "approvals/apr_1.json": true,
		"approvals/apr_1.json.before": false, "sessions/ses_1.json": false, "sessions/ses_1.json.damaged-20261119T170340.123Z": false,
		"vault.key": false, "events/00000000000000000001.jsonl": false, "run/ses_1-1/profile/Default/Preferences": false,
	} {
		if layout.Carried(name) != want {
			t.Errorf("%s carried: %v", name, !want)
		}
	}
}
