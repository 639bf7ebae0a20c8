package page

// Bear forgets which sites do not bear another layout: all pages of a test are one's.
func (t *Tabs) Bear() { t.stubborn = nil }
