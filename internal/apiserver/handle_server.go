package apiserver

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tapin/internal/api"
)

func (s *Server) health(*call, *nothing) (*api.Health, error) {
	h := &api.Health{
		Status:   "ok",
		Version:  s.version,
		Provider: s.provider,
		Sessions: len(s.sessions.List()),
		UptimeS:  int64(time.Since(s.startedAt) / time.Second),
		Troubles: s.troubles(),
	}
	if len(h.Troubles) > 0 {
		h.Status = "degraded"
	}
	if active, err := s.sessions.Active(); err == nil {
		info := active.Info()
		h.Active = &api.ActiveSession{SessionID: info.ID, StartedAt: info.StartedAt.UTC()}
	}
	return h, nil
}

func (s *Server) describe(c *call, _ *nothing) error {
	return c.send(http.StatusOK, "application/json", s.openapi())
}

func (s *Server) figures(c *call, _ *nothing) error {
	c.guard()
	c.status = http.StatusOK
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		DisableCompression: true,
		ErrorHandling:      promhttp.ContinueOnError,
	}).ServeHTTP(c.w, c.r)
	return nil
}
