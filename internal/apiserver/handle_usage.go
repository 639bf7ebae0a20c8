package apiserver

import (
	"slices"
	"strings"
	"time"

	"tapin/internal/api"
	"tapin/internal/browser/usage"
)

// Usage is the account of billed browsers. Safe for concurrent use.
type Usage interface {
	Report(at time.Time) usage.Report
}

// minutes tells what the month came to so far.
func (s *Server) minutes(*call, *nothing) (*api.Usage, error) {
	answer := &api.Usage{Month: time.Now().UTC().Format("2006-01"), Providers: []api.ProviderUsage{}, Running: []api.BilledBrowser{}}
	if s.usage == nil {
		return answer, nil
	}
	now := s.usage.Report(time.Now())
	answer.Month, answer.Minutes, answer.CapMinutes = now.Month, now.Minutes(), now.CapMinutes
	for name, m := range now.Providers {
		answer.Providers = append(answer.Providers, api.ProviderUsage{Provider: name, Sessions: m.Sessions, Seconds: m.Seconds})
	}
	slices.SortFunc(answer.Providers, func(a, b api.ProviderUsage) int { return strings.Compare(a.Provider, b.Provider) })
	for _, b := range now.Running {
		answer.Running = append(answer.Running, api.BilledBrowser{BrowserID: b.ID, Provider: b.Provider, Since: b.Since, Until: b.Until})
	}
	return answer, nil
}
