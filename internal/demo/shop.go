// Package demo is a story that shows what tapin is for: a small shop, an agent
// that shops there over tapin's own API, and, where nobody is at hand, somebody
// who plays the owner on a phone. It owns the shop's pages and the order of the
// story. It must never speak to the engine behind the API's back, nor keep
// anything outside of the home it is given.
package demo

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io/fs"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"time"

	"tapin/internal/secret"
)

//go:embed shop
var files embed.FS

var pages = template.Must(template.ParseFS(files, "shop/pages.html"))

// ShopName is whom the agent pays.
const ShopName = "Fern & Stone"

// ShopHost is the shop's name; names under localhost never leave the machine.
const ShopHost = "fern-and-stone.localhost"

// tea is something to buy.
type tea struct {
	ID, Name, Words string
	Number, Cents   int
}

// Price is what it costs, as the page shows it.
func (t tea) Price() string { return euros(t.Cents) }

var shelf = []tea{
	{"oolong", "Mountain Oolong", "Half-open leaves from above the clouds. Orchid, warm bread.", 1, 1850},
	{"roasted", "Evening Roast", "Twigs and stems over charcoal. Nearly no caffeine.", 2, 1420},
	{"white", "First Frost", "White buds, picked before the sun was up. Melon, hay.", 3, 2490},
}

func euros(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

const (
	visitCookie = "fern_visit"
	loginCookie = "fern_login"
	loginLives  = 90 * 24 * time.Hour
)

// Shop is the make-believe shop. It keeps nothing of what is typed into it: any
// email and any password will do.
type Shop struct {
	key    []byte
	onCode func(code string)
	mux    *http.ServeMux

	mu     sync.Mutex
	visits map[string]*visit
	orders int
}

// visit is one browser in the shop.
type visit struct {
	tea     tea
	entered bool // email and password were given
	code    string
	proven  bool // the code was right
	gap     int  // where the puzzle's leaf belongs
	shown   bool // the puzzle
	speed   string
	order   string
}

// NewShop makes a shop whose logins hold as long as its key is the same. onCode
// hears the text message with the code, as the owner's phone would.
func NewShop(key []byte, onCode func(code string)) *Shop {
	s := &Shop{key: key, onCode: onCode, mux: http.NewServeMux(), visits: map[string]*visit{}}
	assets, err := fs.Sub(files, "shop")
	if err != nil {
		panic(err) // embedded above
	}
	for _, name := range []string{"shop.css", "shop.js", "leaf.svg"} {
		s.mux.Handle("GET /"+name, http.FileServerFS(assets))
	}
	s.mux.HandleFunc("GET /{$}", s.show("home", "Tea, slowly"))
	s.mux.HandleFunc("POST /basket", s.putInBasket)
	s.mux.HandleFunc("GET /basket", s.withTea(s.show("basket", "Basket")))
	s.mux.HandleFunc("GET /sign-in", s.show("sign-in", "Sign in"))
	s.mux.HandleFunc("POST /sign-in", s.enter)
	s.mux.HandleFunc("GET /code", s.needs(func(v *visit) bool { return v.entered }, s.show("code", "Your code")))
	s.mux.HandleFunc("POST /code", s.needs(func(v *visit) bool { return v.entered }, s.prove))
	s.mux.HandleFunc("GET /puzzle", s.needs(func(v *visit) bool { return v.proven }, s.show("puzzle", "One moment")))
	s.mux.HandleFunc("POST /puzzle", s.needs(func(v *visit) bool { return v.proven }, s.solve))
	s.mux.HandleFunc("GET /checkout", s.signedIn(s.withTea(s.show("checkout", "Delivery"))))
	s.mux.HandleFunc("POST /checkout", s.signedIn(s.withTea(s.deliver)))
	s.mux.HandleFunc("GET /pay", s.signedIn(s.withTea(s.show("pay", "Payment"))))
	s.mux.HandleFunc("POST /pay", s.signedIn(s.withTea(s.pay)))
	s.mux.HandleFunc("GET /thanks", s.signedIn(s.withTea(s.show("thanks", "Thank you"))))
	return s
}

// ServeHTTP serves the shop under its own name and no other.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, _, _ := strings.Cut(r.Host, ":"); name != ShopHost {
		http.Error(w, "This shop is called "+ShopHost+".", http.StatusMisdirectedRequest)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	s.mux.ServeHTTP(w, r)
}

// Gap is where the leaf of the puzzle that was shown last belongs: what a
// person sees.
func (s *Shop) Gap() (at int, shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.visits {
		if v.shown {
			at, shown = v.gap, true
		}
	}
	return at, shown
}

// view is what a page shows.
type view struct {
	Page, Title, Wrong     string
	SignedIn               bool
	Teas                   []tea
	Tea                    tea
	Leaf                   string
	Gap                    int
	Delivery, Total, Order string
}

func (s *Shop) show(page, title string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.render(w, r, page, title, "") }
}

func (s *Shop) render(w http.ResponseWriter, r *http.Request, page, title, wrong string) {
	is := view{Page: page, Title: title, Wrong: wrong, SignedIn: s.knows(r), Teas: shelf, Leaf: leaf}
	s.visit(w, r, func(v *visit) {
		delivery := map[string]int{"usual": 390}[v.speed]
		is.Tea, is.Gap, is.Order = v.tea, v.gap, v.order
		v.shown = page == "puzzle"
		is.Delivery, is.Total = euros(delivery), euros(v.tea.Cents+delivery)
	})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if wrong != "" {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
	_ = pages.ExecuteTemplate(w, page, is) // whoever left is not told
}

// visit does something with what is known of this browser.
func (s *Shop) visit(w http.ResponseWriter, r *http.Request, do func(*visit)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := ""
	if c, err := r.Cookie(visitCookie); err == nil {
		id = c.Value
	}
	v := s.visits[id]
	if v == nil {
		const most = 1000 // nobody visits so often
		if len(s.visits) >= most {
			clear(s.visits)
		}
		id, v = rand.Text(), &visit{}
		s.visits[id] = v
		http.SetCookie(w, &http.Cookie{Name: visitCookie, Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}) //nolint:gosec // the shop has plain HTTP on this machine
		r.AddCookie(&http.Cookie{Name: visitCookie, Value: id})                                                                  //nolint:gosec // what the handler reads, sent nowhere
	}
	do(v)
}

// needs leads back to the beginning of the login who skipped a step of it.
func (s *Shop) needs(step func(*visit) bool, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		there := false
		s.visit(w, r, func(v *visit) { there = step(v) })
		if !there {
			http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
			return
		}
		next(w, r)
	}
}

func (s *Shop) signedIn(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.knows(r) {
			http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
			return
		}
		next(w, r)
	}
}

func (s *Shop) withTea(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		empty := false
		s.visit(w, r, func(v *visit) { empty = v.tea.ID == "" })
		if empty {
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		next(w, r)
	}
}

func (s *Shop) putInBasket(w http.ResponseWriter, r *http.Request) {
	for _, t := range shelf {
		if t.ID == r.FormValue("tea") {
			s.visit(w, r, func(v *visit) { v.tea, v.order = t, "" })
		}
	}
	http.Redirect(w, r, "/basket", http.StatusSeeOther)
}

// enter takes any email with any password, and sends the code.
func (s *Shop) enter(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("email") == "" || r.FormValue("password") == "" {
		s.render(w, r, "sign-in", "Sign in", "We need both of them.")
		return
	}
	code := digits()
	s.visit(w, r, func(v *visit) { v.entered, v.code, v.proven = true, code, false })
	s.onCode(code)
	http.Redirect(w, r, "/code", http.StatusSeeOther)
}

func (s *Shop) prove(w http.ResponseWriter, r *http.Request) {
	given, right := strings.Join(strings.Fields(r.FormValue("code")), ""), false
	s.visit(w, r, func(v *visit) {
		if right = secret.New(given).Equal(secret.New(v.code)); right {
			v.proven, v.gap = true, newGap()
		}
	})
	if !right {
		s.render(w, r, "code", "Your code", "That is not the code we sent.")
		return
	}
	http.Redirect(w, r, "/puzzle", http.StatusSeeOther)
}

func (s *Shop) solve(w http.ResponseWriter, r *http.Request) {
	var at int
	_, err := fmt.Sscan(r.FormValue("at"), &at)
	right := false
	s.visit(w, r, func(v *visit) {
		if right = err == nil && at > v.gap-tolerance && at < v.gap+tolerance; !right {
			v.gap = newGap()
		}
	})
	if !right {
		s.render(w, r, "puzzle", "One moment", "Nearly. Once more: slide the leaf onto its shadow, or tap there.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: loginCookie, Value: s.login(), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(loginLives.Seconds())}) //nolint:gosec // the shop has plain HTTP on this machine
	http.Redirect(w, r, "/checkout", http.StatusSeeOther)
}

func (s *Shop) deliver(w http.ResponseWriter, r *http.Request) {
	s.visit(w, r, func(v *visit) { v.speed = r.FormValue("speed") })
	http.Redirect(w, r, "/pay", http.StatusSeeOther)
}

// pay takes the order; a second press of the button does not make it two.
func (s *Shop) pay(w http.ResponseWriter, r *http.Request) {
	s.visit(w, r, func(v *visit) {
		if v.order == "" {
			s.orders++
			v.order = "FS-" + digits()
		}
	})
	http.Redirect(w, r, "/thanks", http.StatusSeeOther)
}

// Orders is how many were paid for.
func (s *Shop) Orders() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders
}

// login makes a cookie that the shop knows again after a restart.
func (s *Shop) login() string {
	id := rand.Text()
	return id + "." + s.sign(id)
}

func (s *Shop) knows(r *http.Request) bool {
	c, err := r.Cookie(loginCookie)
	if err != nil {
		return false
	}
	id, signature, ok := strings.Cut(c.Value, ".")
	return ok && hmac.Equal([]byte(signature), []byte(s.sign(id)))
}

func (s *Shop) sign(id string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// digits are six of them, as in a text message.
func digits() string { return fmt.Sprintf("%06d", random(1_000_000)) }

func random(below int64) int64 {
	n, err := rand.Int(rand.Reader, big.NewInt(below))
	if err != nil {
		panic(err) // the system's own randomness does not fail
	}
	return n.Int64()
}
