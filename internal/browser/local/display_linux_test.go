package local

import (
	"testing"

	"tapin/internal/browser"
	"tapin/internal/fault"
)

func TestAWindowNeedsADisplay(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	_, err := New(t.TempDir(), 1, &Options{Headful: true}).Create(t.Context(), browser.Spec{ID: "brw_x"})
	if f := fault.Of(err); f.Code != fault.SessionCreateFailed || f.Hint == "" {
		t.Errorf("said %v", err)
	}
	if !HasDisplay([]string{"--ozone-platform=headless"}) {
		t.Error("who names a platform needs no display")
	}
	t.Setenv("WAYLAND_DISPLAY", "wayland-0")
	if !HasDisplay(nil) {
		t.Error("a Wayland display is one")
	}
}
