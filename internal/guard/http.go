package guard

import (
	"errors"
	"net/http"
)

// Serve is a handler whose panic is the failure of one request, and is reported.
// What net/http would log of it is the value itself.
func Serve(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				Note(name, v)
			}
			panic(http.ErrAbortHandler) // the connection is cut: what was answered may be half of it
		}()
		next.ServeHTTP(w, r)
	})
}
