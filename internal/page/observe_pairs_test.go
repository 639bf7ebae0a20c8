package page_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// pair is a page at two moments. What is done between them happens on the
// second one, after it has loaded.
type pair struct {
	name          string
	before, after string
	do            string // a script of the page's own
	point         string // what the mouse goes to
}

const loginForm = `<header><nav><a href=/>Home</a><a href=/help>Help</a><a href=/login>Sign in</a></nav></header>
	<main><h1>Sign in</h1><form><label>E-mail <input type=email></label><label>Password <input type=password></label><button>Sign in</button></form></main>`

const account = `<header><nav><a href=/>Home</a><a href=/help>Help</a><button aria-haspopup=menu>Your account</button></nav></header>
	<main><h1>Accounts</h1><p>Here is what you own.</p></main>`

const shop = `<header><nav><a href=/>Home</a><a href=/cart>Cart</a></nav></header><main><h1>Shop</h1><p>Good things for the house.</p>`

// changed are pages that a person has brought further.
var changed = []pair{
	{name: "a login", before: loginForm, after: account},
	{name: "the form is gone", before: loginForm, after: `<header><nav><a href=/>Home</a><a href=/help>Help</a><a href=/login>Sign in</a></nav></header><main><h1>Sign in</h1></main>`},
	{name: "the form is only hidden", before: loginForm, after: loginForm, do: `document.querySelector("form").hidden = true`},
	{name: "only the password field is gone", before: shop + `<form><input type=email aria-label=Mail><input type=password aria-label=Key></form>`, after: shop + `<form><input type=email aria-label=Mail></form>`},
	{name: "an account menu is there", before: shop, after: shop + `<div style="position:absolute"><button aria-label="Account menu"></button></div>`},
	{name: "a link to log out is there", before: `<nav><a href=/in>Log in</a></nav><p>News</p>`, after: `<nav><a href=/out>Log out</a></nav><p>News</p>`},
	{name: "another heading", before: `<h1>Enter your password</h1><p>Please.</p>`, after: `<h1>Welcome back</h1><p>Please.</p>`},
	{name: "a second factor is asked for", before: loginForm, after: `<main><h1>Sign in</h1><form><label>Code <input autocomplete=one-time-code inputmode=numeric></label><button>Sign in</button></form></main>`},
	{name: "the wrong password is said", before: loginForm, after: loginForm + `<div role=alert>That password is wrong.</div>`},
	{name: "a challenge has passed", before: `<h1>One moment</h1><p>We are checking your browser.</p>`, after: `<h1>One moment</h1><p>You may enter.</p>`},
	{name: "a captcha was answered", before: loginForm + `<textarea name=g-recaptcha-response style="display:none"></textarea>`, after: loginForm + `<textarea name=g-recaptcha-response style="display:none">03AFcWeA</textarea>`},
	{name: "a box was ticked", before: shop + `<label><input type=checkbox> I agree</label>`, after: shop + `<label><input type=checkbox> I agree</label>`, do: `document.querySelector("input").click()`},
	{name: "a field was filled", before: shop + `<label>Street <input></label>`, after: shop + `<label>Street <input></label>`, do: `document.querySelector("input").value = "x"`},
	{name: "a question opened over the page", before: shop, after: shop + `<dialog>Delete the card?<button>Delete</button></dialog>`, do: `document.querySelector("dialog").showModal()`},
	{name: "the cart was filled", before: shop + `<p>Your cart is empty.</p>`, after: shop + `<ul><li>A green lamp</li></ul><button>Check out</button>`},
	{name: "the order is placed", before: shop + `<button>Pay now</button>`, after: shop + `<h2>Thank you for your order</h2>`},
	{name: "a frame of the same site changed", before: shop + `<iframe srcdoc="<h2>Log in</h2><input type=password>"></iframe>`, after: shop + `<iframe srcdoc="<h2>Hello</h2>"></iframe>`},
	{name: "a frame of another site stopped asking for a password", before: shop + `<iframe src="OTHER/asks"></iframe>`, after: shop + `<iframe src="OTHER/plain"></iframe>`},
	{name: "a form in an open shadow root is gone", before: shop + `<div id=h></div>`, after: shop + `<div id=h></div>`, do: `h.attachShadow({mode: "open"}).innerHTML = "<h2>Log in</h2><input type=password>"`},
	{name: "a form in a closed shadow root is there", before: shop + `<log-in></log-in>`, after: shop + `<log-in></log-in>`, do: `document.querySelector("log-in").attachShadow({mode: "closed"}).innerHTML = "<h2>Log in</h2><input type=password>"`},
	{name: "an app swapped its view", before: `<div id=app><section><h2>Step one</h2><button>Next</button></section></div>`, after: `<div id=app><section><h2>Review</h2><button>Submit</button></section></div>`},
	{name: "consent is asked for by a site that signs in", before: loginForm, after: `<main class=consent><h1>Allow access?</h1><p>The app wants to read your mail.</p><button>Allow</button><button>Deny</button></main>`},
}

// unchanged are pages that did something by themselves.
var unchanged = []pair{
	{name: "nothing at all", before: loginForm, after: loginForm},
	{name: "a clock", before: shop + `<p>It is 11:59 AM, Monday 3 March 2025</p>`, after: shop + `<p>It is 12:00 PM, Tuesday 4 April 2026</p>`},
	{name: "a clock in the page's language", before: `<html lang=de>` + shop + `<p>Heute ist Dienstag, 3. Oktober</p>`, after: `<html lang=de>` + shop + `<p>Heute ist Mittwoch, 1. Dezember</p>`},
	{name: "how long ago", before: shop + `<p>Posted 59 minutes ago</p><p>Seen just now</p>`, after: shop + `<p>Posted an hour ago</p><p>Seen 2 minutes ago</p>`},
	{name: "a counter", before: shop + `<p>You have <b>1</b> message</p><h2>Inbox (1)</h2>`, after: shop + `<p>You have <b>12</b> messages</p><h2>Inbox (12)</h2>`},
	{name: "prices", before: shop + `<p>Gold <span>▲ 1,234.50 USD</span> <span>+0.3%</span></p>`, after: shop + `<p>Gold <span>▼ 987.10 USD</span> <span>-1.2%</span></p>`},
	{name: "advertising in frames", before: shop + `<iframe src="OTHER/ad1"></iframe>`, after: shop + `<iframe src="OTHER/ad2"></iframe><iframe src="OTHER/ad1"></iframe>`},
	{name: "advertising in the page", before: shop + `<div class="ad-slot top"><h2>Buy a car</h2><a href=/c>Now</a></div>`, after: shop + `<div class="ad-slot top"><h2>Fly south</h2><button>Book</button></div>`},
	{name: "values against forgery", before: loginForm + `<form><input type=hidden name=csrf value=a8f1><button nonce=x1 data-token=q9>Go</button></form>`, after: loginForm + `<form><input type=hidden name=csrf value=77b2><button nonce=x2 data-token=r4>Go</button></form>`},
	{name: "generated ids and classes", before: `<main class="css-1q2w3e" id=":r1:"><h1 class=sc-bdVaJa>Sign in</h1><label for=":r2:">Name</label><input id=":r2:" name=f81a></main>`, after: `<main class="css-9o8i7u" id=":r7:"><h1 class=sc-hqyNC>Sign in</h1><label for=":r9:">Name</label><input id=":r9:" name=c03b></main>`},
	{name: "a spinner", before: shop + `<div class=spinner>Loading</div>`, after: shop + `<progress value=3 max=9></progress>`},
	{name: "an animation", before: shop + `<p id=a>Look</p>`, after: shop + `<p id=a>Look</p>`, do: `a.animate([{opacity: 0, transform: "translateX(900px)"}, {opacity: .2}], 60000)`},
	{name: "a carousel that turned", before: shop + `<div class=hero-carousel><div><h2>Summer</h2></div><div hidden><h2>Winter</h2></div></div>`, after: shop + `<div class=hero-carousel><div hidden><h2>Summer</h2></div><div><h2>Winter</h2></div></div>`},
	{name: "the focus, and a way past the menu", before: `<a href=#m style="position:absolute;left:-9999px" onfocus="style.left=0">Skip to content</a>` + loginForm, after: `<a href=#m style="position:absolute;left:-9999px" onfocus="style.left=0">Skip to content</a>` + loginForm, do: `document.querySelector("a").focus()`},
	{name: "the mouse over a menu", before: `<style>li ul {display: none; position: absolute} li:hover ul {display: block}</style><nav><ul><li id=m>Products<ul><li><a href=/l>Lamps</a></ul></ul></nav>` + shop, after: `<style>li ul {display: none; position: absolute} li:hover ul {display: block}</style><nav><ul><li id=m>Products<ul><li><a href=/l>Lamps</a></ul></ul></nav>` + shop, point: "#m"},
	{name: "a picture that came late", before: shop + `<img loading=lazy alt="A lamp">`, after: shop + `<img loading=lazy alt="A lamp" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" width=9 height=9 class=loaded>`},
	{name: "a question about cookies", before: shop, after: shop + `<div id=cookie-banner style="position:fixed;bottom:0"><h2>We use cookies</h2><button>Accept all</button></div>`},
	{name: "attributes in another order, and whitespace", before: `<main><h1 class=a id=b>Sign  in</h1><input type=text placeholder=Name></main>`, after: "<main>\n\n<h1 id=b\n class=a>Sign in </h1>\n<input placeholder=Name type=text>\n</main>"},
	{name: "a message that fades", before: shop, after: shop + `<div style="position:fixed"><div role=alert>Saved as a draft</div></div>`},
	{name: "an announcement to those who cannot see", before: shop + `<div aria-live=polite></div>`, after: shop + `<div aria-live=polite>Results are being sorted</div>`},
	{name: "a long list with other rows", before: shop + list("Story", 12), after: shop + list("Piece", 15)},
	{name: "an offer to subscribe", before: shop, after: shop + `<div role=dialog class=newsletter-popup><h2>Stay in touch</h2><input type=email><button>Subscribe</button></div>`},
	{name: "a window that was made narrower", before: shop, after: shop, do: `document.body.style.width = "300px", scrollTo(0, 40)`},
	{name: "a greeting", before: `<h1>Good morning</h1><p>Sign in below.</p>`, after: `<h1>Good evening</h1><p>Sign in below.</p>`},
}

func list(word string, rows int) string {
	out := "<ul>"
	for i := range rows {
		out += fmt.Sprintf("<li><a href=/%d>%s of the day, part %c</a></li>", i, word, 'a'+i)
	}
	return out + "</ul>"
}

func TestTheFingerprintNoticesWhatAPersonDidAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, table := range []struct {
		name  string
		pairs []pair
		same  bool
	}{{"changed", changed, false}, {"unchanged", unchanged, true}} {
		t.Run(table.name, func(t *testing.T) {
			t.Parallel()
			ctx := browsertest.Context(t)
			pages := map[string]string{
				"/asks": `<input type=password>`, "/plain": `<p>hello</p>`,
				"/ad1": `<h1>Buy this</h1><button>Now</button>`, "/ad2": `<h1>Buy that</h1><a href=/x>Later</a>`,
			}
			for i, p := range table.pairs {
				pages[fmt.Sprintf("/%d/before", i)], pages[fmt.Sprintf("/%d/after", i)] = p.before, p.after
			}
			s := newStage(ctx, t, pages)
			observe := func(path, do, point string) string {
				t.Helper()
				if _, err := s.tab.Navigate(ctx, s.URL+path, page.WaitLoad); err != nil {
					t.Fatal(err)
				}
				if do != "" {
					s.bare.Eval(ctx, t, do)
				}
				if point != "" {
					if _, err := s.tab.Hover(ctx, page.Locator{CSS: point}, 0); err != nil {
						t.Fatal(err)
					}
				}
				got, err := s.tab.Observe(ctx, page.ObserveOptions{Key: []byte("of this house")})
				if err != nil || got.Partial || len(got.Fingerprint) != 64 {
					t.Fatalf("%+v, %v", got, err)
				}
				return got.Fingerprint
			}
			every := testwait.Rounds(2, 1) // half of them, another half each time
			for i := rand.N(every); i < len(table.pairs); i += every {
				p := table.pairs[i]
				before := observe(fmt.Sprintf("/%d/before", i), "", "")
				after := observe(fmt.Sprintf("/%d/after", i), p.do, p.point)
				if (before == after) != table.same {
					t.Errorf("%s: counts as changed: %v", p.name, before != after)
				}
			}
		})
	}
}
