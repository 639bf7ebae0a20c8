package liveview

import "net/http"

// Reached tells the handler behind Options.Console how a request came: the
// origin that a page of ours there has, whose address it is as far as that can
// be known, and whether nobody on the way can read it. Host and Origin have been
// checked.
func Reached(r *http.Request) (origin, address string, secure bool) {
	at := visitOf(r)
	return at.origin, at.address, at.secure
}
