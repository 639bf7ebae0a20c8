package page

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"

	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"

	"tapin/internal/cdp"
	"tapin/internal/fault"
)

const (
	// maxBytes is what all files of one upload may have together, where they
	// travel through the protocol and are held by the page.
	maxBytes  = 50 << 20
	bytesEach = 1 << 20 // of one message
)

// What is run on the field, one after the other: a box beside it takes the
// parts of each file, and in the end the field gets them as a person's choice
// would. Only then does the page hear of them.
const (
	boxScript  = "function() { return {field: this, files: [], parts: []} }"
	partScript = "function(text) { this.parts.push(Uint8Array.from(atob(text), c => c.charCodeAt(0))) }"
	fileScript = "function(name, type, changed) { this.files.push(new File(this.parts, name, {type, lastModified: changed})); this.parts = [] }"
	giveScript = `function() {
		const all = new DataTransfer();
		for (const file of this.files) all.items.add(file);
		this.field.files = all.files;
		for (const kind of ["input", "change"]) this.field.dispatchEvent(new Event(kind, {bubbles: true, composed: true}));
	}`
)

// giveBytes gives a file input what is in the files, for a browser that cannot
// read our disk. It would take a name that it does not find without a word.
func giveBytes(ctx context.Context, s *cdp.Session, p dom.SetFileInputFilesParams) error {
	field := p.ObjectID
	if field == "" {
		node, err := proto.Call(ctx, s, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: p.BackendNodeID})
		if err != nil {
			return err
		}
		field = node.Object.ObjectID
		defer release(ctx, s, field)
	}
	box, err := onObject(ctx, s, field, false, boxScript)
	if err != nil {
		return err
	}
	defer release(ctx, s, box)
	left := int64(maxBytes)
	for _, path := range p.Files {
		if left, err = giveFile(ctx, s, box, path, left); err != nil {
			return err
		}
	}
	_, err = onObject(ctx, s, box, true, giveScript)
	return err
}

// giveFile puts one file into the box, in parts.
func giveFile(ctx context.Context, s *cdp.Session, box runtime.RemoteObjectID, path string, left int64) (int64, error) {
	f, err := os.Open(path) //nolint:gosec // the caller has checked that it may leave
	if err != nil {
		return left, fault.New(fault.InvalidRequest, "", "a file cannot be read")
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		return left, fault.New(fault.InvalidRequest, "", "only ordinary files can be given to a browser elsewhere")
	case info.Size() > left:
		return left, fault.New(fault.PayloadTooLarge, "", "files for a browser elsewhere may have %d MiB together", maxBytes>>20)
	}
	part := make([]byte, bytesEach)
	for {
		n, err := io.ReadFull(f, part)
		if n > 0 {
			if left -= int64(n); left < 0 {
				return left, fault.New(fault.PayloadTooLarge, "", "a file grew while it was read")
			}
			if _, err := onObject(ctx, s, box, true, partScript, base64.StdEncoding.EncodeToString(part[:n])); err != nil {
				return left, err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return left, fault.New(fault.InvalidRequest, "", "a file cannot be read")
		}
	}
	kind, _, _ := strings.Cut(mime.TypeByExtension(filepath.Ext(path)), ";") // a browser names no charset
	_, err = onObject(ctx, s, box, true, fileScript, filepath.Base(path), kind, info.ModTime().UnixMilli())
	return left, err
}

// onObject runs a function on an object of the page, and returns its result as
// an object too unless only its having run matters.
func onObject(ctx context.Context, s *cdp.Session, on runtime.RemoteObjectID, ran bool, script string, args ...any) (runtime.RemoteObjectID, error) {
	params := runtime.CallFunctionOnParams{ObjectID: on, FunctionDeclaration: script}
	if ran {
		params.ReturnByValue = &ran
	}
	for _, a := range args {
		raw, err := json.Marshal(a)
		if err != nil {
			return "", err
		}
		params.Arguments = append(params.Arguments, &runtime.CallArgument{Value: jsonv2.Value(raw)})
	}
	got, err := proto.Call(ctx, s, runtime.CallFunctionOn, params)
	if err != nil {
		return "", err
	}
	if got.ExceptionDetails != nil {
		return "", fault.New(fault.ElementNotActionable, "", "the page did not take the files")
	}
	return got.Result.ObjectID, nil
}

func release(ctx context.Context, s *cdp.Session, object runtime.RemoteObjectID) {
	_ = s.Send(ctx, runtime.ReleaseObject.Method, runtime.ReleaseObjectParams{ObjectID: object})
}
