package secret_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"tapin/internal/secret"
)

const canary = "canary-5f1d0c"

func TestASecretPrintsNowhere(t *testing.T) {
	t.Parallel()
	type holder struct {
		Name   string
		Value  secret.Text
		Nested map[string]*secret.Text
	}
	s := secret.New(canary)
	h := holder{Name: "n", Value: s, Nested: map[string]*secret.Text{"k": &s}}

	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T %v"} {
		fmt.Fprintf(&out, verb+"\n", s, h)
		fmt.Fprintf(&out, verb+"\n", &h, &s)
	}
	for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		b, err := encode(h)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("x", "secret", s, "ptr", &s, "in", h)
	}
	out.WriteString(fmt.Errorf("wrap %v: %w", s, errors.New("cause")).Error())

	if strings.Contains(out.String(), canary) || strings.Contains(out.String(), fmt.Sprintf("%x", canary)) {
		t.Fatalf("the secret was printed:\n%s", out.String())
	}
	if s.Reveal() != canary {
		t.Fatal("Reveal does not return the value")
	}
}

func TestASecretCanBeReadIn(t *testing.T) {
	t.Parallel()
	var in struct{ Token secret.Text }
	if err := json.Unmarshal([]byte(`{"Token":"`+canary+`"}`), &in); err != nil {
		t.Fatal(err)
	}
	if !in.Token.Equal(secret.New(canary)) || in.Token.Equal(secret.New("other")) || in.Token.IsEmpty() {
		t.Fatal("the value did not arrive")
	}
}
