package page_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

func TestADialogThatAnswersADeedIsNoFailure(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := newStage(ctx, t, map[string]string{"/": `
		<input type=checkbox id=tick onchange="confirm('sure?')"><input type=date id=date onchange="alert('a day')">
		<select id=list onchange="alert('chosen')"><option>Red</option><option>Blue</option></select>
		<input type=file id=file onchange="alert('thanks')"><button id=ask onclick="late.click()">Choose a file</button><input type=file id=late hidden onchange="alert('thanks')">
		<input id=typed oninput="if (!window.said) { window.said = true; alert('a letter') }"><input id=plain>
		<div role=combobox id=drawn onclick="opts.hidden=false" aria-controls=opts tabindex=0>Size</div><ul id=opts role=listbox hidden><li role=option onclick="alert('size')">Large</li></ul>`,
		"/late": `<p>nothing here`})
	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	fill := func(css ...string) func() ([]page.Filled, error) {
		return func() ([]page.Filled, error) {
			var fields []page.Field
			for _, c := range css {
				value := map[string]string{"#tick": "true", "#date": "2025-03-04", "#list": "Blue"}[c]
				if value == "" {
					value = "words"
				}
				fields = append(fields, page.Field{Locator: page.Locator{CSS: c}, Value: secret.New(value)})
			}
			return s.tab.Fill(ctx, fields, testwait.Limit())
		}
	}
	other := func(err error) ([]page.Filled, error) { return nil, err }
	for _, tt := range []struct {
		name   string
		act    func() ([]page.Filled, error)
		failed bool   // a field was left over, so that it is DIALOG_OPEN
		sure   []bool // of each field filled
		is     string // what holds once the dialog is answered
	}{
		{"a box", fill("#tick"), false, []bool{true}, "tick.checked"},
		{"a date", fill("#plain", "#date"), false, []bool{true, true}, "date.value === '2025-03-04'"},
		{"a list in a form", fill("#list"), false, []bool{true}, "list.value === 'Blue'"},
		{"a text that may be there in part", fill("#typed"), false, []bool{false}, "typed.value[0] === 'w'"},
		{"a field after the one that asks", fill("#tick", "#plain"), true, []bool{true}, "tick.checked && plain.value === ''"},
		{"a list", func() ([]page.Filled, error) {
			_, err := s.tab.Select(ctx, page.Locator{CSS: "#list"}, []string{"Blue"}, testwait.Limit())
			return other(err)
		}, false, nil, "list.value === 'Blue'"},
		{"a drawn list", func() ([]page.Filled, error) {
			_, err := s.tab.Select(ctx, page.Locator{CSS: "#drawn"}, []string{"Large"}, testwait.Limit())
			return other(err)
		}, false, nil, "true"},
		{"a file", func() ([]page.Filled, error) {
			return other(s.tab.Upload(ctx, page.Locator{CSS: "#file"}, []string{file}, testwait.Limit()))
		}, false, nil, "file.files.length === 1"},
		{"a file that a button asks for", func() ([]page.Filled, error) {
			return other(s.tab.Upload(ctx, page.Locator{CSS: "#ask"}, []string{file}, testwait.Limit()))
		}, false, nil, "late.files.length === 1"},
	} {
		s.open(ctx, t, "/")
		filled, err := tt.act()
		if tt.failed != errors.Is(err, fault.DialogOpen) || !tt.failed && err != nil || s.tab.Dialog() == nil {
			t.Errorf("%s: %v, and the dialog %+v", tt.name, err, s.tab.Dialog())
		}
		for i, sure := range tt.sure {
			if len(filled) != len(tt.sure) || filled[i].OK != sure {
				t.Errorf("%s: filled %+v", tt.name, filled)
				break
			}
		}
		// Whatever is done under it is refused.
		if _, err := tt.act(); !errors.Is(err, fault.DialogOpen) {
			t.Errorf("%s under a dialog: %v", tt.name, err)
		}
		if err := s.tab.Answer(ctx, true, ""); err != nil {
			t.Fatal(err)
		}
		s.is(ctx, t, tt.is)
	}
	s.open(ctx, t, "/late")
	var waited sync.WaitGroup
	waited.Go(func() {
		// By then it is waited for: while the one look is under way that comes first
		// and fills what is there, a dialog may be its doing as well.
		time.Sleep(time.Second)
		s.bare.Eval(ctx, t, "setTimeout(() => alert('by itself'))")
	})
	never := []page.Field{{Locator: page.Locator{CSS: "#never"}, Value: secret.New("words")}}
	_, err := s.tab.Fill(ctx, never, testwait.Limit())
	waited.Wait()
	if !errors.Is(err, fault.DialogOpen) {
		t.Errorf("a dialog that nobody asked for, while a field was waited for: %v", err)
	}
}
