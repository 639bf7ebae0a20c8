package browsertest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/local"
	"tapin/internal/egress"
	"tapin/internal/testwait"
)

// house is the one browser in which the tests of a package have their rooms: to
// start one for each costs more than most of them do in it.
var house struct {
	sync.Mutex
	dir    string
	shared browser.Shared
}

// here is what listens on this machine.
var here = egress.Policy{BlockPrivate: true, Allow: []string{"127.0.0.1", "localhost"}}

// Room is a private context of the package's own browser, which gets to what
// listens on this machine and to nothing else that is private. It ends with the
// test. The browser ends with Main; a test that ends one or reads its processes
// starts its own.
func Room(t *testing.T) browser.Instance {
	t.Helper()
	ctx := testwait.Context(t)
	house.Lock()
	defer house.Unlock()
	if house.shared == nil {
		dir, err := os.MkdirTemp("", "tapin")
		if err != nil {
			t.Fatal(err)
		}
		house.dir = dir
		house.shared, err = local.New(dir, 1, nil).Share(ctx, browser.Spec{
			ID: "ses_house-1", KeepUntil: time.Now().Add(time.Hour), Policy: here,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	inst, err := house.shared.Context(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := testwait.Within(context.Background())
		defer cancel()
		if err := inst.End(ctx); err != nil {
			t.Errorf("end the room: %v", err)
		}
	})
	return inst
}

// Alone is a browser of the test's own, for what the rooms of a house share, as
// the clipboard.
func Alone(t *testing.T) browser.Instance {
	t.Helper()
	dir, err := os.MkdirTemp("", "tapin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	provider := local.New(dir, 1, nil)
	inst, err := provider.Create(testwait.Context(t), browser.Spec{ID: "ses_alone-1", KeepUntil: testwait.Late(), Policy: here})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { End(t, provider, inst.Ref()) })
	return inst
}

func demolish() {
	house.Lock()
	defer house.Unlock()
	if house.shared == nil {
		return
	}
	ctx, cancel := testwait.Within(context.Background())
	defer cancel()
	_ = house.shared.End(ctx)
	_ = os.RemoveAll(house.dir)
}
