package page

// Unasked reports whether the page told it by itself.
func (s *Snapshot) Unasked() bool { return s.unasked }
