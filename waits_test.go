package tapin_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Tests that wait a few seconds fail on a machine that does something else. All
// of them have one limit, in internal/testwait. What has to be short, since it
// must run out for the test to say anything, says so on its line.
func TestNoTestHasALimitOfItsOwn(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if path == "bin" || path == "tools" || d.Name() == "node_modules" || len(path) > 1 && path[0] == '.' {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "internal/browser/browsertest/"):
			return nil
		}
		files++
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, at := range ownLimits(fset, file) {
			t.Errorf("%s: a limit of its own: wait by internal/testwait, or say behind it why it is // short: …", at)
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files were read: %v", files, err)
	}
}

// ownLimits finds durations written out where a test waits, or holds against
// them how long something took.
func ownLimits(fset *token.FileSet, file *ast.File) (found []string) {
	if imports(file, "testing/synctest") {
		return nil // its time is not the machine's
	}
	excused := map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if _, why, ok := strings.Cut(c.Text, "short: "); ok && len(why) > 10 {
				excused[fset.Position(c.Pos()).Line] = true
			}
		}
	}
	report := func(n ast.Node) {
		if at := fset.Position(n.Pos()); !excused[at.Line] {
			found = append(found, fmt.Sprintf("%s:%d", at.Filename, at.Line))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch name := selected(n.Fun); {
			case name == "context.WithTimeout" && len(n.Args) == 2 && spelled(n.Args[1]),
				name == "time.After" && spelled(n.Args[0]):
				report(n)
			case strings.HasSuffix(name, "Deadline") && len(n.Args) == 1 && fromNow(n.Args[0]):
				report(n)
			}
		case *ast.AssignStmt:
			if slices.ContainsFunc(n.Rhs, fromNow) && deadline(n.Lhs[0]) {
				report(n)
			}
		case *ast.BinaryExpr:
			sides := []ast.Expr{n.X, n.Y}
			if slices.Contains([]token.Token{token.LSS, token.GTR, token.LEQ, token.GEQ}, n.Op) &&
				slices.ContainsFunc(sides, spelled) && slices.ContainsFunc(sides, elapsed) {
				report(n)
			}
		}
		return true
	})
	return found
}

func imports(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+path+`"` })
}

// selected is a name with the name before it.
func selected(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return "." + s.Sel.Name
}

// spelled reports whether a duration is written out.
func spelled(e ast.Expr) bool {
	units := []string{"time.Millisecond", "time.Second", "time.Minute"}
	is := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			is = is || slices.Contains(units, selected(n))
		case *ast.CallExpr:
			return false
		}
		return true
	})
	return is
}

// fromNow reports whether it is a moment so and so long after now.
func fromNow(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 || !spelled(call.Args[0]) {
		return false
	}
	add, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || add.Sel.Name != "Add" {
		return false
	}
	now, ok := add.X.(*ast.CallExpr)
	return ok && selected(now.Fun) == "time.Now"
}

// deadline reports whether a variable is when a wait ends.
func deadline(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && slices.Contains([]string{"deadline", "until", "end", "limit", "late"}, id.Name)
}

// elapsed reports whether it is how long something took.
func elapsed(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		return selected(e.Fun) == "time.Since"
	case *ast.Ident:
		return slices.Contains([]string{"took", "elapsed", "best"}, e.Name)
	}
	return false
}

func TestALimitOfItsOwnIsNoticed(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		`ctx, end := context.WithTimeout(ctx, 5*time.Second)`:                                 1,
		`ctx, end := context.WithTimeout(ctx, 50*time.Millisecond) // short: it must run out`: 0,
		`ctx, end := context.WithTimeout(ctx, 50*time.Millisecond) // short`:                  1,
		`ctx, end := testwait.Within(ctx)`:                                                    0,
		`<-time.After(time.Second)`:                                                           1,
		`<-time.After(quiet)`:                                                                 0,
		`conn.SetReadDeadline(time.Now().Add(3 * time.Second))`:                               1,
		`for until := time.Now().Add(time.Minute); time.Now().Before(until); {}`:              1,
		`if time.Since(began) > 3*time.Second {}`:                                             1,
		`if took := time.Since(began); took > testwait.Limit() {}`:                            0,
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "x_test.go", "package x\nfunc f() {\n"+line+"\n}", parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := ownLimits(fset, file); len(got) != want {
			t.Errorf("%s: %v, want %d", line, got, want)
		}
	}
}
