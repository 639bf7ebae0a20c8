package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// rawTab is one page, by the least CDP that does the job.
type rawTab struct {
	*raw
	session string
}

// open makes a tab, in a context of its own where that is asked for.
func (b *raw) open(private bool) (*rawTab, error) {
	params := map[string]any{"url": "about:blank"}
	if private {
		var made struct {
			ID string `json:"browserContextId"`
		}
		if err := b.call("", "Target.createBrowserContext", nil, &made); err != nil {
			return nil, err
		}
		params["browserContextId"] = made.ID
	}
	var made struct {
		TargetID string `json:"targetId"`
	}
	if err := b.call("", "Target.createTarget", params, &made); err != nil {
		return nil, err
	}
	var at struct {
		SessionID string `json:"sessionId"`
	}
	if err := b.call("", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &at); err != nil {
		return nil, err
	}
	t := &rawTab{b, at.SessionID}
	return t, t.do("Page.enable", nil)
}

func (t *rawTab) do(method string, params any) error { return t.call(t.session, method, params, nil) }

// navigate opens an address and waits for an event of the page.
func (t *rawTab) navigate(url, until string) error {
	events, deaf := t.hear(t.session, until, 1)
	defer deaf()
	var got struct {
		ErrorText string `json:"errorText"`
	}
	if err := t.call(t.session, "Page.navigate", map[string]any{"url": url}, &got); err != nil {
		return err
	}
	if got.ErrorText != "" {
		return fmt.Errorf("%s: %s", url, got.ErrorText)
	}
	select {
	case <-events:
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s never came to %s", url, until)
	}
}

// photograph takes a PNG, in base64.
func (t *rawTab) photograph() (string, error) {
	var shot struct {
		Data string `json:"data"`
	}
	err := t.call(t.session, "Page.captureScreenshot", map[string]any{"format": "png", "optimizeForSpeed": true}, &shot)
	return shot.Data, err
}

func (t *rawTab) screenshot() error {
	png, err := t.photograph()
	if err != nil {
		return err
	}
	return rightPicture(png)
}

// eval runs a script and reads its value.
func (t *rawTab) eval(script string, into any) error {
	var got struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	if err := t.call(t.session, "Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &got); err != nil {
		return err
	}
	if got.Exception != nil {
		return fmt.Errorf("%.80s: %s", script, got.Exception.Text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(got.Result.Value, into)
}

// click asks where the element is and presses there; nothing is checked.
func (t *rawTab) click(selector string) error {
	var at [2]float64
	if err := t.eval(`(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector(`+quote(selector)+`).getBoundingClientRect())`, &at); err != nil {
		return err
	}
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		params := map[string]any{"type": kind, "x": at[0], "y": at[1]}
		if kind != "mouseMoved" {
			params["button"], params["clickCount"] = "left", 1
		}
		if err := t.do("Input.dispatchMouseEvent", params); err != nil {
			return err
		}
	}
	return nil
}

// fill selects what is in the field and puts a text in its place.
func (t *rawTab) fill(selector, text string) error {
	if err := t.eval(`(e => { e.focus(); e.select() })(document.querySelector(`+quote(selector)+`))`, nil); err != nil {
		return err
	}
	return t.do("Input.insertText", map[string]any{"text": text})
}

func (t *rawTab) text() (string, error) {
	var said string
	err := t.eval("document.body.innerText", &said)
	return said, err
}

func (t *rawTab) outline() error {
	var tree struct {
		Nodes []json.RawMessage `json:"nodes"`
	}
	if err := t.call(t.session, "Accessibility.getFullAXTree", nil, &tree); err != nil {
		return err
	}
	if len(tree.Nodes) == 0 {
		return errors.New("the tree is empty")
	}
	return nil
}

func quote(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(raw)
}
