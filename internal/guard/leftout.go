package guard

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tapin/internal/store"
)

// LeftOutFile is where a home keeps what its next start leaves out.
const LeftOutFile = "left-out.json"

// leaveFor is how long a room is left out before it is tried again.
const leaveFor = 24 * time.Hour

// Room is one that a start can do without.
type Room struct {
	Name     string
	packages []string // whose code on a failing stack is on its account; a package or a type in one
}

// Dispensable lists the rooms that a start of the sidecar can do without.
func Dispensable() []Room {
	const in = "tapin/internal/"
	return []Room{
		{Figures, []string{in + "insight", in + "sidecar.counted", in + "sidecar.figures", in + "sidecar.(*figures)"}},
		{OneShots, []string{in + "oneshot"}},
		{Console, []string{in + "console", in + "sidecar.(*overview)"}},
		{MCP, []string{in + "mcpserver"}},
		{Nearby, []string{in + "sidecar.(*near)", in + "sidecar.(*sidecar).serveNear"}},
		{Spares, []string{in + "sidecar.(*providers).keepSpares", in + "sidecar.(*expected)"}},
		{Address, []string{in + "reach", in + "sidecar.(*sidecar).followNames"}},
	}
}

// CanDoWithout reports whether a start can do without a room of this name.
func CanDoWithout(name string) bool {
	return slices.ContainsFunc(Dispensable(), func(r Room) bool { return r.Name == name })
}

// The names of the rooms that run behind a guard, as people read them.
const (
	Figures  = "figures"
	OneShots = "one-shots"
	Console  = "console"
	MCP      = "MCP door"
	Nearby   = "local network"
	Spares   = "spare browsers"
	Address  = "public address"

	Deadlines  = "deadlines"
	Letters    = "letters"
	Sweeps     = "sweeping of hand-offs"
	RunSweeps  = "sweeping of runs"
	LaterWork  = "recovery"
	Damages    = "news of damaged files"
	Wakes      = "wakes"
	Chat       = "chat"
	Tunnel     = "tunnel"
	Watch      = "watch over the sidecar"
	WakeNews   = "news for wakes"
	ChatNews   = "news for the chat"
	Discovered = "discovered address"
)

// Left is one room that is left out.
type Left struct {
	Room   string    `json:"room"`
	Report string    `json:"report"` // the file of the crash report
	Since  time.Time `json:"since"`
	Tried  bool      `json:"tried"` // its time is up and it runs again, on trial
}

// Until is when it is tried again.
func (l Left) Until() time.Time { return l.Since.Add(leaveFor) }

// LeftOut is the list of one home and one version. It is safe for concurrent use.
type LeftOut struct {
	home, version string

	mu sync.Mutex
}

type leftOutFile struct {
	Version string `json:"version"`
	Rooms   []Left `json:"rooms"`
}

// OpenLeftOut is the list of a home. What another version left out means nothing
// for this one.
func OpenLeftOut(home, version string) *LeftOut { return &LeftOut{home: home, version: version} }

// List is what is left out or on trial.
func (l *LeftOut) List() []Left {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read()
}

func (l *LeftOut) read() []Left {
	raw, err := readAtMost(filepath.Join(l.home, LeftOutFile), mostBytes)
	var f leftOutFile
	if err != nil || json.Unmarshal(raw, &f) != nil || f.Version != l.version {
		return nil
	}
	return slices.DeleteFunc(f.Rooms, func(one Left) bool {
		forgotten := time.Since(one.Since) > 2*leaveFor && one.Tried
		return forgotten || time.Until(one.Since) > time.Minute // of a clock that was wrong
	})
}

func (l *LeftOut) write(rooms []Left) error {
	file := filepath.Join(l.home, LeftOutFile)
	if len(rooms) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	raw, err := json.MarshalIndent(leftOutFile{l.version, rooms}, "", "  ")
	if err != nil {
		return err
	}
	return replace(file, append(raw, '\n'))
}

// replace gives a file another content, as a whole. Whatever lies in the way of
// what is not finished is what an earlier one left.
func replace(file string, raw []byte) error {
	temp := file + ".new"
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := os.WriteFile(temp, raw, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, file)
}

// MendLeftOut puts a list aside that cannot be used, so that another can be made.
// A start that cannot read it tries everything.
func MendLeftOut(home *store.Home) {
	store.Derived(home, LeftOutFile, func(raw *json.RawMessage) error {
		if len(*raw) > mostBytes {
			return store.ErrTooLarge
		}
		return json.Unmarshal(*raw, new(leftOutFile))
	})
}

// Until is when a room may be tried again that is left out now.
func (l *LeftOut) Until(name string) (time.Time, bool) {
	for _, one := range l.List() {
		if one.Room == name && !one.Tried {
			return one.Until(), true
		}
	}
	return time.Time{}, false
}

// OnTrial reports whether a room was left out and runs again.
func (l *LeftOut) OnTrial(name string) bool {
	return slices.ContainsFunc(l.List(), func(one Left) bool { return one.Room == name && one.Tried })
}

// Try notes that a room runs again, on trial.
func (l *LeftOut) Try(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rooms := l.read()
	for i := range rooms {
		rooms[i].Tried = rooms[i].Tried || rooms[i].Room == name
	}
	_ = l.write(rooms) // the worst is that it has three failures again, not one
}

// Leave has the next start do without a room.
func (l *LeftOut) Leave(name, report string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rooms := slices.DeleteFunc(l.read(), func(one Left) bool { return one.Room == name })
	return l.write(append(rooms, Left{Room: name, Report: report, Since: time.Now().UTC().Round(0)}))
}

// Clear has the next start try everything.
func (l *LeftOut) Clear() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(nil)
}
