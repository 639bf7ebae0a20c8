package telegram

import (
	"path/filepath"
	"testing"
	"time"

	"tapin/internal/guard"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/trouble"
)

func TestAPanicWhilePollingIsAFailureOfTheChat(t *testing.T) { //nolint:paralleltest // the guard is the process's
	home, err := store.Open(filepath.Join(t.TempDir(), "h"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	defer guard.Install(&guard.Process{Reports: &guard.Reports{Home: home.Path(), Part: "daemon"}})()
	room, err := New(home, secret.New("1:token"), &Options{APIURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	room.log = nil // whoever polls, and cannot, panics as it says so
	var board trouble.Board
	h := guard.NewHouse(&guard.Options{Board: &board, Pauses: []time.Duration{time.Millisecond}})
	h.Room(t.Context(), guard.Chat, room.Run) // until it is given up
	if got := board.List(); len(got) != 1 || got[0].What != guard.Chat || got[0].State != trouble.GivenUp {
		t.Errorf("shown: %+v", got)
	}
	if all, err := guard.List(home.Path()); err != nil || len(all) != 1 || all[0].Times != 5 || all[0].Room != guard.Chat {
		t.Errorf("reported: %+v, %v", all, err)
	}
}
