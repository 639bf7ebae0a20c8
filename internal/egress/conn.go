package egress

import (
	"context"
	"net"
	"net/netip"
)

// guardedConn is a connection that its dialer can still judge.
type guardedConn struct {
	net.Conn
	dialer *Dialer
	target target
	addr   netip.Addr
}

// keep registers a fresh connection. The rules may have changed while it was
// made, so it is judged once more, after Recheck can see it.
func (d *Dialer) keep(ctx context.Context, raw net.Conn, t target, a netip.Addr) (net.Conn, error) {
	c := &guardedConn{Conn: raw, dialer: d, target: t, addr: a}
	d.mu.Lock()
	d.conns[c] = struct{}{}
	d.mu.Unlock()
	if rule := c.judge(d.rules()); rule != "" {
		_ = c.Close()
		return nil, d.refuse(ctx, t, a, rule)
	}
	return c, nil
}

func (c *guardedConn) judge(r *Rules) string {
	if c.target.name != "" && isVendor(c.target.name) {
		return RuleVendor
	}
	return r.judgeAddr(c.target, c.addr)
}

// Close ends the connection.
func (c *guardedConn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.conns, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite tells the peer that nothing more comes.
func (c *guardedConn) CloseWrite() error { return closeWrite(c.Conn) }

func (c *guardedConn) unwrap() net.Conn { return c.Conn }

// Recheck ends every connection that the rules of now would refuse, in use or
// not. Call it when they have changed.
func (d *Dialer) Recheck() {
	rules := d.rules()
	d.closeIf(func(c *guardedConn) bool { return c.judge(rules) != "" })
}

// CloseAll ends every connection made so far.
func (d *Dialer) CloseAll() {
	d.closeIf(func(*guardedConn) bool { return true })
}

func (d *Dialer) closeIf(doomed func(*guardedConn) bool) {
	d.mu.Lock()
	var ending []*guardedConn
	for c := range d.conns {
		if doomed(c) {
			ending = append(ending, c)
		}
	}
	d.mu.Unlock()
	for _, c := range ending {
		_ = c.Close()
	}
}

// closeWrite half-closes where the connection can, and else ends it: the peer
// has to learn that nothing more comes.
func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Close()
}

// rawConn unwraps ours, so that io.Copy finds the kernel's fast path.
func rawConn(c net.Conn) net.Conn {
	for {
		u, ok := c.(interface{ unwrap() net.Conn })
		if !ok {
			return c
		}
		c = u.unwrap()
	}
}
