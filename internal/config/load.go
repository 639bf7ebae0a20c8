package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tapin/internal/fault"
)

// loader collects values, where they came from, and what was wrong.
type loader struct {
	file     string
	config   *Config
	origins  *Origins
	problems []error
}

func newLoader(in Inputs) *loader {
	l := &loader{file: in.FileName, config: Default(), origins: &Origins{byPath: map[string]Origin{}}}
	if l.file == "" {
		l.file = "config.yaml"
	}
	return l
}

func (l *loader) problem(at Origin, format string, args ...any) {
	place := at.Name
	if at.Source == FromFile {
		place = fmt.Sprintf("%s:%d:%d", at.Name, at.Line, at.Column)
	}
	l.problems = append(l.problems, fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...)))
}

// fault is everything that was wrong, or nil.
func (l *loader) fault() error {
	if len(l.problems) == 0 {
		return nil
	}
	return fault.New(fault.InvalidRequest, "read settings", "%w", errors.Join(l.problems...)).
		WithHint("Correct what the details name; nothing was started or changed.")
}

// assign gives a key its value, if it is one.
func (l *loader) assign(s *setting, v value, at Origin) {
	field := reflect.New(s.typ).Elem()
	if err := v.into(field); err != nil {
		l.problem(at, "%s %v", s.path, err)
		return
	}
	l.field(s).Set(field)
	l.origins.byPath[s.path] = at
}

func (l *loader) field(s *setting) reflect.Value {
	return reflect.ValueOf(l.config).Elem().FieldByIndex(s.index)
}

func (l *loader) readEnv(environ []string) {
	seen := map[string]string{}
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "TAPIN_") || text == "" || isForeign(name) {
			continue
		}
		at := Origin{Source: FromEnv, Name: name}
		s, known := settingByEnv[name]
		if !known {
			names := slices.Sorted(maps.Keys(settingByEnv))
			l.problem(at, "no setting has this variable%s", didYouMean(name, names))
			continue
		}
		if other, twice := seen[s.path]; twice && other != name {
			l.problem(at, "%s is set by %s already; keep one of them", s.path, other)
			continue
		}
		seen[s.path] = name
		l.assignText(s, text, at)
	}
}

// isForeign tells variables that are tapin's but not settings: where the home
// is, its key, where another user's tapin is, what a woken agent is told, and
// what the tests use.
func isForeign(name string) bool {
	return slices.Contains([]string{
		"TAPIN_HOME", "TAPIN_VAULT_KEY", "TAPIN_URL", "TAPIN_TOKEN_FILE",
		"TAPIN_HANDOFF_ID", "TAPIN_HANDOFF_STATUS", "TAPIN_RUN_ID", "TAPIN_SESSION_ID", "TAPIN_WAKE_ID",
	}, name) ||
		strings.HasPrefix(name, "TAPIN_CHAOS") || strings.HasPrefix(name, "TAPIN_TEST_")
}

func (l *loader) readSet(flags []string) {
	for _, flag := range flags {
		path, text, ok := strings.Cut(flag, "=")
		at := Origin{Source: FromFlag, Name: "--set " + shown(path)}
		if !ok || path == "" {
			l.problem(Origin{Source: FromFlag, Name: "--set"}, "must be written key=value")
			continue
		}
		if s := settingByPath[path]; s != nil {
			l.assignText(s, text, at)
			continue
		}
		// One entry of a map: cdp.headers.Authorization=…
		if s, name := mapSetting(path); s != nil {
			l.assignEntry(s, name, text, at)
			continue
		}
		if sections[path] {
			l.problem(at, "this is a section; set one of its keys%s", l.inSection(path))
			continue
		}
		l.problem(at, "there is no such setting%s", didYouMean(path, slices.Sorted(maps.Keys(settingByPath))))
	}
}

func mapSetting(path string) (s *setting, entry string) {
	for i, r := range path {
		if s := settingByPath[path[:i]]; r == '.' && s != nil && s.typ.Kind() == reflect.Map {
			return s, path[i+1:]
		}
	}
	return nil, ""
}

func (l *loader) assignText(s *setting, text string, at Origin) {
	v, err := valueOf(text, s.typ)
	if err != nil {
		l.problem(at, "%s %v", s.path, err)
		return
	}
	l.assign(s, v, at)
}

// assignEntry adds to a copy, since the map may be one that others hold.
func (l *loader) assignEntry(s *setting, name, text string, at Origin) {
	field, grown := l.field(s), reflect.MakeMap(s.typ)
	for k, v := range field.Seq2() {
		grown.SetMapIndex(k, v)
	}
	item := reflect.New(s.typ.Elem()).Elem()
	if err := scalarInto(item, text); err != nil {
		l.problem(at, "%s %v", s.path, err)
		return
	}
	grown.SetMapIndex(reflect.ValueOf(name), item)
	field.Set(grown)
	l.origins.byPath[s.path] = at
}

// inSection names a few keys of a section, as an example to go on from.
func (l *loader) inSection(path string) string {
	var names []string
	for _, s := range settings {
		if strings.HasPrefix(s.path, path+".") && len(names) < 3 {
			names = append(names, s.path)
		}
	}
	return ", such as " + strings.Join(names, ", ")
}

// derive settles the keys that follow from others.
func (l *loader) derive() {
	c := l.config
	port, control := l.origins.Of(portPath), l.origins.Of(controlPath)
	bb := &c.Integrations.Browserbase
	switch {
	case port.Source > control.Source:
		c.Listen.Control = loopback(bb.SidecarPort)
		l.origins.byPath[controlPath] = port
	case control.Source > FromDefault:
		_, text, _ := net.SplitHostPort(c.Listen.Control)
		n, err := strconv.Atoi(text)
		if err != nil {
			break // check says what is wrong with the address
		}
		if port.Source == control.Source && bb.SidecarPort != n {
			l.problem(port, "%s is %d, but listen.control has port %d; keep one of them", portPath, bb.SidecarPort, n)
			break
		}
		bb.SidecarPort = n
		l.origins.byPath[portPath] = control
	}
	if at := l.origins.Of(controlPath); at.Source > FromDefault && l.origins.Of(publicPath).Source == FromDefault {
		// A second tapin that is given a place of its own has one for people too.
		if beside, ok := nextPort(c.Listen.Control); ok {
			c.Listen.Public = beside
			l.origins.byPath[publicPath] = at
		}
	}
	if l.origins.Of(remindPath).Source == FromDefault {
		c.Notify.RemindAt = []Duration{bb.IdleWarning}
		if idle := l.origins.Of(idlePath); idle.Source != FromDefault {
			l.origins.byPath[remindPath] = idle
		}
	}
	slices.Sort(c.Notify.RemindAt)
	c.Notify.RemindAt = slices.Compact(c.Notify.RemindAt)
}

// nextPort is the port beside that of an address, on loopback. Where the system
// chooses one, it chooses the other too.
func nextPort(address string) (string, bool) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", false // check says what is wrong with it
	}
	port, err := strconv.Atoi(text)
	switch {
	case err != nil || port < 0 || port > 65535:
		return "", false
	case port == 65535:
		port--
	case port > 0:
		port++
	}
	return loopback(port), true
}
