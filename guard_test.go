package tapin_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// unguarded are the goroutines that no guard is needed for, by the folder or the
// file in which they are begun. Whoever begins one elsewhere puts it behind
// internal/guard.
var unguarded = map[string]string{
	"internal/guard":                       "is the guard",
	"internal/browser/browserbase/standin": "a service of others, for tests; the program does not have it",
	"internal/browser/browsertest":         "for tests; the program does not have it",
	"internal/chat/telegram/bottest":       "a service of others, for tests; the program does not have it",
}

func TestEveryGoroutineIsGuarded(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	begun := 0
	for _, root := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			for _, at := range goroutines(file) {
				begun++
				if at.guarded {
					continue
				}
				if _, known := unguarded[filepath.Dir(path)]; known {
					used[filepath.Dir(path)] = true
					continue
				}
				t.Errorf("%s: a panic here ends the process. Begin it with defer guard.Catch or guard.Vital, or run it by the house or guard.Group; see internal/guard", fset.Position(at.pos))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if begun < 100 {
		t.Errorf("only %d goroutines were found: the test looks in the wrong place", begun)
	}
	for place := range unguarded {
		if !used[place] {
			t.Errorf("%s begins no goroutine that would need to be in the table", place)
		}
	}
}

func TestAGoroutineWithoutAGuardIsFound(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		`go func() { defer guard.Catch("x"); f() }()`:               true,
		`go func() { defer guard.Vital("x"); f() }()`:               true,
		`go func() { done <- guard.Call("x", f, err) }()`:           true,
		`w.Go(func() { h.house.Room(ctx, "x", f) })`:                true,
		`time.AfterFunc(d, func() { defer guard.Catch("x"); f() })`: true,
		`context.AfterFunc(ctx, cancel)`:                            true,
		`time.AfterFunc(d, s.stopWork)`:                             true,
		`go f()`:                                                    false,
		`go func() { f(); guard.Note("x", nil) }()`:                 false,
		`go func() { defer recover(); f() }()`:                      false,
		`w.Go(f)`:                                                   false,
		`w.Go(func() { f() })`:                                      false,
		`w.Go(func() { x.Room(f) })`:                                false,
		`time.AfterFunc(d, func() { f() })`:                         false,
		`context.AfterFunc(ctx, f)`:                                 false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc y() {\n"+code+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		found := goroutines(file)
		if len(found) != 1 || found[0].guarded != want {
			t.Errorf("%s: %+v, want guarded=%v", code, found, want)
		}
	}
}

type beginning struct {
	pos     token.Pos
	guarded bool
}

// goroutines are the places of a file where one begins: go, a wait group's Go,
// and what a timer or a context calls.
func goroutines(file *ast.File) (found []beginning) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, beginning{n.Pos(), behindGuard(n.Call.Fun)})
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch {
			case f.Sel.Name == "Go" && len(n.Args) == 1:
				found = append(found, beginning{n.Pos(), behindGuard(n.Args[0])})
			case f.Sel.Name == "AfterFunc" && len(n.Args) == 2:
				found = append(found, beginning{n.Pos(), behindGuard(n.Args[1]) || endsAContext(n.Args[1])})
			}
		}
		return true
	})
	return found
}

// behindGuard reports whether the first thing that a function does is to put
// itself behind a guard.
func behindGuard(fn ast.Expr) bool {
	lit, ok := fn.(*ast.FuncLit)
	if !ok || len(lit.Body.List) == 0 {
		return false
	}
	switch first := lit.Body.List[0].(type) {
	case *ast.DeferStmt:
		return ofGuard(first.Call, "Catch", "Vital")
	case *ast.ExprStmt:
		return ofGuard(first.X, "Again") || ofHouse(first.X)
	case *ast.SendStmt:
		return len(lit.Body.List) == 1 && ofGuard(first.Value, "Call")
	}
	return false
}

func ofGuard(x ast.Expr, names ...string) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := f.X.(*ast.Ident)
	for _, name := range names {
		if ok && pkg.Name == "guard" && f.Sel.Name == name {
			return true
		}
	}
	return false
}

func ofHouse(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "Room" {
		return false
	}
	house, ok := f.X.(*ast.SelectorExpr)
	return ok && house.Sel.Name == "house"
}

// endsAContext reports whether a function is one that context.WithCancel gave:
// by its name, which is what they are called here.
func endsAContext(fn ast.Expr) bool {
	name := ""
	switch fn := fn.(type) {
	case *ast.Ident:
		name = fn.Name
	case *ast.SelectorExpr:
		name = fn.Sel.Name
	}
	return name == "cancel" || name == "cut" || strings.HasPrefix(name, "stop")
}
