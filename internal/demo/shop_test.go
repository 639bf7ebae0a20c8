package demo

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// customer is a browser in the shop, without a screen.
type customer struct {
	t    *testing.T
	shop *Shop
	jar  http.CookieJar
	code string
}

func enters(t *testing.T, key string) *customer {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &customer{t: t, jar: jar}
	c.shop = NewShop([]byte(key), func(code string) { c.code = code })
	return c
}

// goes follows redirects and says at which path it ended up, and what is there.
func (c *customer) goes(method, path string, form url.Values) (at, page string) {
	c.t.Helper()
	base := &url.URL{Scheme: "http", Host: ShopHost}
	for range 5 {
		req := httptest.NewRequest(method, "http://"+ShopHost+path, strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, cookie := range c.jar.Cookies(base) {
			req.AddCookie(cookie)
		}
		w := httptest.NewRecorder()
		c.shop.ServeHTTP(w, req)
		c.jar.SetCookies(base, w.Result().Cookies())
		next := w.Header().Get("Location")
		if next == "" {
			return path, w.Body.String()
		}
		method, path, form = http.MethodGet, next, nil
	}
	c.t.Fatal("the shop sends its customers around in circles")
	return "", ""
}

func (c *customer) at(want, method, path string, form url.Values) string {
	c.t.Helper()
	at, page := c.goes(method, path, form)
	if at != want {
		c.t.Fatalf("%s %s leads to %s, not %s", method, path, at, want)
	}
	return page
}

func (c *customer) logsIn() {
	c.t.Helper()
	c.at("/code", "POST", "/sign-in", url.Values{"email": {"a@example.com"}, "password": {"anything"}})
	c.at("/puzzle", "POST", "/code", url.Values{"code": {c.code[:3] + " " + c.code[3:]}})
	gap, shown := c.shop.Gap()
	if !shown {
		c.t.Fatal("there is no puzzle")
	}
	c.at("/checkout", "POST", "/puzzle", url.Values{"at": {strconv.Itoa(gap + tolerance - 1)}})
}

func TestTheShopLetsNobodyAroundItsLogin(t *testing.T) {
	t.Parallel()
	c := enters(t, "a key")
	c.at("/basket", "POST", "/basket", url.Values{"tea": {"oolong"}})
	for _, path := range []string{"/checkout", "/pay", "/thanks", "/code", "/puzzle"} {
		c.at("/sign-in", "GET", path, nil)
	}
	c.at("/sign-in", "POST", "/pay", nil)
	c.at("/sign-in", "POST", "/puzzle", url.Values{"at": {"100"}})
	c.at("/sign-in", "POST", "/sign-in", url.Values{"email": {"a@example.com"}})
	c.at("/code", "POST", "/sign-in", url.Values{"email": {"a@example.com"}, "password": {"anything"}})
	if page := c.at("/code", "POST", "/code", url.Values{"code": {"no"}}); !strings.Contains(page, "not the code") {
		t.Error("a wrong code is not told")
	}
	c.at("/puzzle", "POST", "/code", url.Values{"code": {c.code}})
	for _, beside := range []int{tolerance, -tolerance} { // each try has another place
		gap, _ := c.shop.Gap()
		for _, wrong := range []string{strconv.Itoa(gap + beside), "", "left"} {
			if page := c.at("/puzzle", "POST", "/puzzle", url.Values{"at": {wrong}}); !strings.Contains(page, "Nearly") {
				t.Errorf("the puzzle takes %q", wrong)
			}
		}
	}
	if c.shop.Orders() != 0 {
		t.Error("something was sold")
	}
}

func TestALoginOutlivesTheShopButNotItsKey(t *testing.T) {
	t.Parallel()
	c := enters(t, "a key")
	c.at("/basket", "POST", "/basket", url.Values{"tea": {"oolong"}})
	c.logsIn()
	for key, want := range map[string]string{"a key": "/checkout", "another key": "/sign-in"} {
		again := enters(t, key)
		again.jar = c.jar
		again.at("/basket", "POST", "/basket", url.Values{"tea": {"oolong"}})
		again.at(want, "GET", "/checkout", nil)
	}
}

func TestAPaymentIsTakenOnce(t *testing.T) {
	t.Parallel()
	c := enters(t, "a key")
	c.at("/basket", "POST", "/basket", url.Values{"tea": {"oolong"}})
	c.logsIn()
	if page := c.at("/pay", "POST", "/checkout", url.Values{"speed": {"usual"}}); !strings.Contains(page, "€22.40") {
		t.Error("the total is wrong")
	}
	first := c.at("/thanks", "POST", "/pay", nil)
	if again := c.at("/thanks", "POST", "/pay", nil); again != first || c.shop.Orders() != 1 {
		t.Errorf("pressed twice it is paid %d times", c.shop.Orders())
	}
}

func TestTheShopAnswersToItsNameAlone(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	enters(t, "a key").shop.ServeHTTP(w, httptest.NewRequest("GET", "http://example.com/", nil))
	if w.Code != http.StatusMisdirectedRequest {
		t.Errorf("another name gets %d", w.Code)
	}
}
