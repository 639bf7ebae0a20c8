package apiserver

import (
	"net/http"
	"slices"
	"strings"
)

// router finds the row of a request. Its patterns are fixed segments and at
// most one {id} or {name}; paths are taken as sent, never cleaned or redirected.
type router struct {
	exact   map[string][]*route
	pattern []patterned
}

type patterned struct {
	prefix, suffix string // around the braces
	rows           []*route
}

func newRouter(table []*route) *router {
	r := &router{exact: map[string][]*route{}}
	for _, row := range table {
		for _, path := range row.paths() {
			prefix, suffix, has := cutParameter(path)
			if !has {
				r.exact[path] = append(r.exact[path], row)
				continue
			}
			i := slices.IndexFunc(r.pattern, func(p patterned) bool { return p.prefix == prefix && p.suffix == suffix })
			if i < 0 {
				i = len(r.pattern)
				r.pattern = append(r.pattern, patterned{prefix: prefix, suffix: suffix})
			}
			r.pattern[i].rows = append(r.pattern[i].rows, row)
		}
	}
	return r
}

// cutParameter cuts a path around what stands in braces.
func cutParameter(path string) (prefix, suffix string, has bool) {
	prefix, rest, has := strings.Cut(path, "{")
	_, suffix, _ = strings.Cut(rest, "}")
	return prefix, suffix, has
}

// find returns the row and the id in the path. Without a row, allow lists the
// methods the path has, and is empty for a path that does not exist.
func (r *router) find(method, path string) (row *route, id string, allow []string) {
	rows, known := r.exact[path]
	if !known {
		for _, p := range r.pattern {
			rest, ok := strings.CutPrefix(path, p.prefix)
			if !ok {
				continue
			}
			rest, ok = strings.CutSuffix(rest, p.suffix)
			if ok && rest != "" && !strings.Contains(rest, "/") {
				rows, id = p.rows, rest
				break
			}
		}
	}
	for _, row := range rows {
		if row.method == method || (method == http.MethodHead && row.method == http.MethodGet && !row.stream) {
			return row, id, nil
		}
		allow = append(allow, row.method)
		if row.method == http.MethodGet && !row.stream {
			allow = append(allow, http.MethodHead)
		}
	}
	return nil, "", allow
}
