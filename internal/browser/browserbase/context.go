package browserbase

import (
	"context"
	"errors"
	"net/http"

	"tapin/internal/fault"
)

// NewKept makes an empty context, for a login that Browserbase keeps. One whose
// answer is lost stays behind empty: contexts cannot be listed, and cost nothing.
func (p *Provider) NewKept(ctx context.Context) (string, error) {
	const op = "make a context at Browserbase"
	account, err := p.rest.who(ctx)
	if err != nil {
		return "", err
	}
	body := struct {
		ProjectID string `json:"projectId,omitempty"`
	}{account.Project}
	var made struct {
		ID string `json:"id"`
	}
	err = p.rest.call(ctx, http.MethodPost, "/v1/contexts", body, &made)
	if err == nil && made.ID == "" {
		err = errors.New("the answer names no context")
	}
	return made.ID, blame(op, fault.ProviderError, err)
}

// DropKept deletes a context for good, and with it the login that it kept.
func (p *Provider) DropKept(ctx context.Context, id string) error {
	err := p.rest.ask(ctx, http.MethodDelete, escape("/v1/contexts/%s", id), nil, nil)
	if refusedWith(err, http.StatusNotFound) {
		return nil
	}
	return blame("delete a context at Browserbase", fault.ProviderError, err)
}
