package tapin_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestWhatComesOutOfAFileIsUsable holds every type that JSON is decoded into to
// its zero value: a map that the file does not have is nil, and one assignment to
// it ends the process, at this start and at every other. And a list of what is
// pointed to may have a null in it.
func TestWhatComesOutOfAFileIsUsable(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		found, err := unmade(os.DirFS(path))
		for _, f := range found {
			t.Errorf("%s: %s", path, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestANilMapIsFound(t *testing.T) {
	t.Parallel()
	const types = "package p\n" + "type lengths map[int]int\n" +
		"type rec struct {\n\tCount map[string]int `json:\"count,omitempty\"`\n\tLong lengths `json:\"long,omitempty\"`\n\tPlain map[string]int\n}\n"
	for name, tt := range map[string]struct {
		code string
		want int
	}{
		"an assignment":                    {"func f(r *rec) { r.Count[\"a\"] = 1 }", 1},
		"an increment":                     {"func f(r *rec) { r.Count[\"a\"]++ }", 1},
		"further inside":                   {"func f(r *struct{ in rec }) { r.in.Count[\"a\"] += 2 }", 1},
		"a method of a map":                {"func (l lengths) add() { l[1]++ }", 1},
		"a method that makes it":           {"func (l *lengths) add() {\n\tif *l == nil {\n\t\t*l = lengths{}\n\t}\n\t(*l)[1]++\n}", 0},
		"a method that does not":           {"func (l *lengths) add() { (*l)[1]++ }", 1},
		"one that is made":                 {"func f(r *rec) {\n\tif r.Count == nil {\n\t\tr.Count = map[string]int{}\n\t}\n\tr.Count[\"a\"] = 1 }", 0},
		"one that is made with its struct": {"func f() { r := rec{Count: map[string]int{}}; r.Count[\"a\"] = 1 }", 0},
		"one that is made too late":        {"func f(r *rec) { r.Count[\"a\"] = 1; r.Count = map[string]int{} }", 1},
		"a map in no file":                 {"func f(r *rec) { r.Plain[\"a\"] = 1 }", 0},
		"a list of pointers":               {"type all struct {\n\tRecs []*rec `json:\"recs\"`\n}\nfunc f() { home.ReadJSON(x, y) }", 1},
		"a list of pointers in no file":    {"type all struct {\n\tRecs []*rec `json:\"recs\"`\n}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(types+tt.code), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := unmade(os.DirFS(dir))
			if err != nil || len(got) != tt.want {
				t.Errorf("found %q, want %d; %v", got, tt.want, err)
			}
		})
	}
}

// unmade says where one package assigns to a map that may have come out of a file
// without being made, and where it keeps lists of pointers in one. It goes by the
// names of fields, which have a key of JSON.
func unmade(dir fs.FS) (found []string, err error) {
	names, err := fs.Glob(dir, "*.go")
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	reads := false
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		raw, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(set, name, raw, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files, reads = append(files, file), reads || strings.Contains(string(raw), ".ReadJSON(")
	}
	kinds, fields := map[string]bool{}, map[string]bool{} // named maps; fields of a file that are maps
	each := func(visit func(ast.Node)) {
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool { visit(n); return true })
		}
	}
	each(func(n ast.Node) {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if _, ok := spec.Type.(*ast.MapType); ok {
				kinds[spec.Name.Name] = true
			}
		}
	})
	kept := map[string]bool{} // named maps that are in a file
	each(func(n ast.Node) {
		field, ok := n.(*ast.Field)
		if !ok || field.Tag == nil || reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json") == "" {
			return
		}
		name, isName := field.Type.(*ast.Ident)
		_, isMap := field.Type.(*ast.MapType)
		if isMap || isName && kinds[name.Name] {
			for _, n := range field.Names {
				fields[n.Name] = true
			}
		}
		if isName && kinds[name.Name] {
			kept[name.Name] = true
		}
	})
	for _, file := range files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				found = append(found, assignments(set, d, fields, kept)...)
			case *ast.GenDecl:
				if reads {
					found = append(found, pointers(set, d)...)
				}
			}
		}
	}
	return found, nil
}

// assignments are those of one function to maps that it has not made before.
func assignments(set *token.FileSet, d *ast.FuncDecl, fields, kept map[string]bool) (found []string) {
	made := map[string]token.Pos{}
	make := func(name string, at token.Pos) {
		if before, ok := made[name]; !ok || at < before {
			made[name] = at
		}
	}
	own := "" // the receiver, where that is such a map
	if d.Recv != nil && len(d.Recv.List[0].Names) == 1 {
		kind := d.Recv.List[0].Type
		if star, ok := kind.(*ast.StarExpr); ok {
			kind = star.X
		}
		if name, ok := kind.(*ast.Ident); ok && kept[name.Name] {
			own = d.Recv.List[0].Names[0].Name
		}
	}
	// of is the name of the map, if it is one of those.
	of := func(e ast.Expr) string {
		for {
			switch x := e.(type) {
			case *ast.ParenExpr:
				e = x.X
				continue
			case *ast.StarExpr:
				e = x.X
				continue
			case *ast.SelectorExpr:
				if fields[x.Sel.Name] {
					return x.Sel.Name
				}
			case *ast.Ident:
				if own != "" && x.Name == own {
					return own
				}
			}
			return ""
		}
	}
	type use struct {
		name string
		at   token.Pos
	}
	var uses []use
	assigned := func(e ast.Expr) {
		if index, ok := e.(*ast.IndexExpr); ok {
			if name := of(index.X); name != "" {
				uses = append(uses, use{name, index.Pos()})
			}
		} else if name := of(e); name != "" {
			make(name, e.Pos())
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				assigned(e)
			}
		case *ast.IncDecStmt:
			assigned(n.X)
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && fields[key.Name] {
				make(key.Name, n.Pos())
			}
		}
		return true
	})
	for _, u := range uses {
		if at, ok := made[u.name]; !ok || at > u.at {
			found = append(found, fmt.Sprintf("%s: %s may be nil: a file does not have it. Make it where it is assigned to, or give it a method that does", set.Position(u.at), u.name))
		}
	}
	return slices.Compact(found)
}

// pointers are the lists of pointers in the types of a file.
func pointers(set *token.FileSet, d *ast.GenDecl) (found []string) {
	ast.Inspect(d, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok || field.Tag == nil || !strings.Contains(field.Tag.Value, "json:") {
			return true
		}
		if list, ok := field.Type.(*ast.ArrayType); ok {
			if _, ok := list.Elt.(*ast.StarExpr); ok {
				found = append(found, fmt.Sprintf("%s: a null in the file would be a nil among them: keep the values", set.Position(field.Pos())))
			}
		}
		return true
	})
	return found
}
