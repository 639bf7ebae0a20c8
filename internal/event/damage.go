package event

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"tapin/internal/store"
	"tapin/internal/trouble"
)

// maxDamages is how many files may wait to be told of; beyond it the list alone
// knows them.
const maxDamages = 256

// Damages puts every file of a home that cannot be used up on a list, and has
// the feed told of it: once for each damage, however often tapin starts with it.
type Damages struct {
	home  *store.Home
	board *trouble.Board
	log   *slog.Logger
	found chan damaged

	mu     sync.Mutex
	mended map[string]bool // files that could be used again since we began
}

// damaged is a damage and the file as it was when it was found.
type damaged struct {
	store.Damage
	id string
}

// WatchDamages begins to watch; Run tells. There is one who watches a home.
func WatchDamages(home *store.Home, board *trouble.Board, log *slog.Logger) *Damages {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Damages{home: home, board: board, log: log, found: make(chan damaged, maxDamages), mended: map[string]bool{}}
	home.OnDamage(d.take)
	return d
}

// take is called under the home's lock, and asks the home for nothing.
func (d *Damages) take(one store.Damage, again bool) {
	if again {
		d.mu.Lock()
		d.mended[one.File] = true
		d.mu.Unlock()
		d.board.Clear("file " + one.File)
	} else {
		d.board.Set("file "+named(one), troubleOf(one))
	}
	next := damaged{Damage: one}
	if !again {
		next.id = d.idOf(one)
	}
	select {
	case d.found <- next:
	default:
	}
}

// named is the file as it is called now.
func named(d store.Damage) string {
	if d.Aside != "" {
		return d.Aside
	}
	return d.File
}

// idOf is the same for one damage in every process and at every start, and
// another for the next damage of the same file.
func (d *Damages) idOf(one store.Damage) string {
	of := named(one)
	if one.Aside == "" { // what is put aside has the time in its name
		if info, err := os.Lstat(filepath.Join(d.home.Path(), one.File)); err == nil {
			of = fmt.Sprintf("%s %d %d %v", of, info.ModTime().UnixNano(), info.Size(), info.Mode())
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.mended[one.File] { // it may be the same file again, as when a permission came and went
			of += fmt.Sprint(" ", one.At.UnixNano())
		}
	}
	sum := sha256.Sum256([]byte(of))
	return "fil_" + hex.EncodeToString(sum[:12])
}

// troubleOf says in the words of the list what became of a file.
func troubleOf(d store.Damage) trouble.Trouble {
	if d.Aside != "" {
		return trouble.Trouble{
			What: d.Kind, State: trouble.SetAside, Since: d.At,
			Details: fmt.Sprintf("%s: %s. The file is %s now.", d.File, d.Why, d.Aside),
			Hint:    "Nothing need be done. Keep the file if somebody shall look at it, or remove it.",
		}
	}
	return trouble.Trouble{
		What: d.Kind, State: trouble.Unreadable, Since: d.At,
		Details: fmt.Sprintf("%s: %s. The file is left as it is; everything else works.", d.File, d.Why),
		Hint:    "Run tapin doctor --fix: it says what can be done.",
	}
}

// Run has each damage told until ctx ends. Changed is called after every change
// of the list; nil means that nobody asks.
func (d *Damages) Run(ctx context.Context, tell func(context.Context, Event) error, changed func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-d.found:
			if changed != nil {
				changed()
			}
			if one.id == "" {
				continue
			}
			if err := d.tell(ctx, one, tell); err != nil && ctx.Err() == nil {
				d.log.Warn("a damaged file could not be told of yet", "file", one.File, "error", err)
			}
		}
	}
}

func (d *Damages) tell(ctx context.Context, one damaged, tell func(context.Context, Event) error) error {
	t, kind, said := troubleOf(one.Damage), FileUnread, " cannot be read: "
	if one.Aside != "" {
		kind, said = FileSetAside, " was put aside: "
	}
	data, err := json.Marshal(Trouble{Details: "The file of kind \"" + t.What + "\"" + said + t.Details, Hint: t.Hint})
	if err != nil {
		return err
	}
	return tell(ctx, Event{ID: one.id, Version: 1, Type: kind, At: one.At, Data: data})
}
