package page_test

import (
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// inHand is a phone that shows a page between a header and a bar.
var inHand = page.Glass{Width: 390, Height: 640, ScreenWidth: 390, ScreenHeight: 844, Scale: 3}

// layouts are pages that take a change of their size differently.
var layouts = map[string]string{
	"/mobile": `<title>mobile</title><meta name=viewport content="width=device-width, initial-scale=1"><style>body{margin:0}</style>
		<form><label for=u>Name</label><input id=u name=u><input id=p name=p type=password><select id=s name=s><option>a<option>b</select>
		<input id=c type=checkbox name=c><textarea id=t name=t></textarea></form>
		<details id=d><summary>more</summary>text</details><p style="height:3000px">long</p>
		<script>log = []; for (const e of ["resize", "blur", "submit", "pagehide"]) addEventListener(e, () => log.push(e), true)</script>`,
	"/desktop": `<title>desktop</title><input id=u>`,
	"/claims":  `<title>claims</title><meta name=viewport content="width=device-width"><div style="position:fixed;left:500px;top:100px"><input id=u><input id=p type=password></div>`,
	"/wide":    `<title>wide</title><div style="width:1600px">wide</div>`,
	"/reloads": `<title>reloads</title><meta name=viewport content="width=device-width"><input id=u name=u><input id=p name=p type=password>
		<script>addEventListener("resize", () => location.reload())</script>`,
	"/clears": `<title>clears</title><meta name=viewport content="width=device-width"><form id=f><input id=u name=u></form>
		<script>addEventListener("resize", () => f.reset())</script>`,
	"/closes": `<title>closes</title><meta name=viewport content="width=device-width"><div id=m role=dialog style="display:none">in a dialog</div>
		<script>m.style.display = "block"; addEventListener("resize", () => m.style.display = "none")</script>`,
	"/renders": `<title>renders</title><meta name=viewport content="width=device-width"><div id=r><input name=u></div>
		<script>addEventListener("resize", () => { const v = r.firstChild.value; r.innerHTML = "<input name=u>"; r.firstChild.value = v })</script>`,
}

const glass = `[innerWidth, innerHeight, devicePixelRatio, screen.width, screen.height, navigator.maxTouchPoints > 0, matchMedia("(pointer: coarse)").matches].join()`

const (
	asThePhone = "390,640,3,390,844,true,true"
	asTheAgent = "1280,720,1,1280,720,false,false"
)

func TestAPageIsLaidOutForThePhoneAndBack(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, layouts)
	d.open(ctx, t, "/mobile")
	d.says(ctx, t, glass, asTheAgent)
	before, err := d.tab.Snapshot(ctx, page.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.eval(ctx, t, d.tab, `(scrollTo(0, 500), u.value = "robin", p.value = "canary", s.value = "b", c.checked = true, t.value = "words", d.open = true, 0)`)
	scrolled := d.eval(ctx, t, d.tab, `String(scrollY)`)
	filled, err := d.tab.Snapshot(ctx, page.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}

	for _, step := range []struct {
		want  page.Fitting
		glass page.Glass
		says  string
	}{
		{page.FitAutomatic, inHand, asThePhone},
		{page.FitAutomatic, page.Glass{Width: 844, Height: 270, ScreenWidth: 844, ScreenHeight: 390, Scale: 3}, "844,270,3,844,390,true,true"}, // turned
		{page.FitDesktop, inHand, asTheAgent},
		{page.FitPhone, inHand, asThePhone},
	} {
		if err := d.tabs.Fit(ctx, step.glass, step.want); err != nil {
			t.Fatal(err)
		}
		d.says(ctx, t, glass, step.says)
		d.says(ctx, t, `[u.value, p.value, s.value, c.checked, t.value, d.open].join()`, "robin,canary,b,true,words,true")
	}
	if now := d.tabs.Fitted(); !now.Phone || !now.Mobile || now.Stubborn {
		t.Errorf("%+v", now)
	}
	d.says(ctx, t, `log.includes("pagehide") || log.includes("submit") || log.includes("blur")`, "false")

	free, had, err := d.tabs.Unfit(ctx)
	if err != nil || !had {
		t.Fatal(had, err)
	}
	d.says(ctx, t, glass, asTheAgent)
	d.says(ctx, t, `String(scrollY)`, scrolled)
	after, err := d.tab.Snapshot(ctx, page.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.Text != filled.Text || before.Text == filled.Text {
		t.Errorf("before it was\n%s\nand then\n%s", filled.Text, after.Text)
	}
	// Nobody lays it out while it is looked at.
	laid := make(chan error, 1)
	go func() { laid <- d.tabs.Fit(ctx, inHand, page.FitAutomatic) }()
	d.says(ctx, t, glass, asTheAgent)
	free()
	if err := <-laid; err != nil {
		t.Fatal(err)
	}
	d.says(ctx, t, glass, asThePhone)
	// The next page of the same tab is laid out as it was made.
	d.open(ctx, t, "/desktop")
	if err := d.tabs.Fit(ctx, inHand, page.FitAutomatic); err != nil {
		t.Fatal(err)
	}
	d.says(ctx, t, glass, asTheAgent)
	// One that only says that it was made for phones is not torn apart.
	d.open(ctx, t, "/claims")
	for range 2 {
		if err := d.tabs.Fit(ctx, inHand, page.FitAutomatic); err != nil {
			t.Fatal(err)
		}
		d.says(ctx, t, glass, asTheAgent)
	}
	if err := d.tabs.Fit(ctx, inHand, page.FitPhone); err != nil {
		t.Fatal(err)
	}
	d.says(ctx, t, glass, asThePhone)
	// One that is wider than the agent's window is seen whole.
	d.open(ctx, t, "/wide")
	if err := d.tabs.Fit(ctx, inHand, page.FitAutomatic); err != nil {
		t.Fatal(err)
	}
	d.says(ctx, t, `String(innerWidth >= 1600 && document.scrollingElement.scrollWidth <= innerWidth && !navigator.maxTouchPoints)`, "true")
	if err := d.tabs.Fit(ctx, inHand, page.FitDesktop); err != nil {
		t.Fatal(err)
	}
	d.says(ctx, t, glass, asTheAgent)
	d.tabs.ForgetFit()
	free, had, err = d.tabs.Unfit(ctx)
	if err != nil || had {
		t.Error(had, err)
	}
	free()
}

// A page that throws away what was in it when its size changes keeps the size that
// it had, and what was in it.
func TestAPageThatDoesNotBearAnotherLayoutIsLeftAlone(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	d := sitAt(ctx, t, layouts)
	for _, tt := range []struct{ path, fill, says, want string }{
		{"/reloads", `(u.value = "robin", p.value = "canary", 0)`, `[u.value, p.value].join()`, "robin,canary"},
		{"/clears", `(u.value = "robin", 0)`, `u.value`, "robin"},
		{"/closes", ``, `document.title`, "closes"},
	} {
		d.open(ctx, t, tt.path)
		if tt.fill != "" {
			d.eval(ctx, t, d.tab, tt.fill)
		}
		if err := d.tabs.Fit(ctx, inHand, page.FitAutomatic); err != nil {
			t.Fatal(err)
		}
		testwait.For(t, tt.path+" is as it was", func() bool { return d.eval(ctx, t, d.tab, glass) == asTheAgent })
		testwait.For(t, tt.path+" has what it had", func() bool { return d.eval(ctx, t, d.tab, tt.says) == tt.want })
		if now := d.tabs.Fitted(); now.Phone || !now.Stubborn {
			t.Errorf("%s: %+v", tt.path, now)
		}
		// It is not tried again, whoever asks for it.
		if err := d.tabs.Fit(ctx, inHand, page.FitPhone); err != nil {
			t.Fatal(err)
		}
		d.says(ctx, t, glass, asTheAgent)
		d.tabs.Bear()
	}
	// Who draws anew and loses nothing bears it.
	d.open(ctx, t, "/renders")
	d.eval(ctx, t, d.tab, `(document.querySelector("input").value = "robin", 0)`)
	if err := d.tabs.Fit(ctx, inHand, page.FitAutomatic); err != nil {
		t.Fatal(err)
	}
	d.says(ctx, t, glass, asThePhone)
	d.says(ctx, t, `document.querySelector("input").value`, "robin")
}
