package canary

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/browser/local/holder"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ownerArg {
		beOwner()
	}
	if len(os.Args) > 1 && os.Args[1] == sidecarArg {
		fmt.Fprintln(os.Stderr, beSidecar(os.Args[2], os.Args[3:]))
		os.Exit(1)
	}
	browsertest.Main(m, &holder.Options{Resolver: &resolver{asked: map[string]int{}}})
}

// resolver answers the names of the test and no other: it runs in the holder's
// process, which knows nothing of the test, so the names say what they mean.
type resolver struct {
	mu    sync.Mutex
	asked map[string]int
}

var (
	loop4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loop6 = netip.IPv6Loopback()
	// public is an address of the world's sink for stray DNS questions. It is
	// only ever an answer: the guard refuses, or has connected before its turn.
	public = netip.AddrFrom4([4]byte{192, 31, 196, 1})
)

var answers = map[string][]netip.Addr{
	"v4loop.test":         {loop4},
	"v6loop.test":         {loop6},
	"mapped.test":         {netip.AddrFrom16(loop4.As16())},
	"zero.test":           {netip.IPv4Unspecified()},
	"mixed-loop.test":     {loop4, public},
	"mixed-public.test":   {public, loop4},
	"mixed-families.test": {loop4, loop6},
}

// LookupNetIP answers; a rebind name has a harmless address the first time only.
func (r *resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[host]++
	switch {
	case strings.HasPrefix(host, "rebind-") && r.asked[host] == 1:
		return []netip.Addr{loop4}, nil
	case strings.HasPrefix(host, "rebind-"):
		return []netip.Addr{loop6}, nil
	case host == machineName():
		return []netip.Addr{loop4}, nil
	case answers[host] != nil:
		return answers[host], nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return "machine"
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// An owner is a process of its own that is connected to a browser until it is
// killed: what the sidecar is.
const ownerArg = "owner"

type ownerJob struct {
	Run   string
	Epoch uint64
	Ref   browser.Ref
}

func beOwner() {
	var job ownerJob
	if err := json.NewDecoder(os.Stdin).Decode(&job); err != nil {
		os.Exit(2)
	}
	inst, err := local.New(job.Run, job.Epoch, nil).Reconnect(context.Background(), job.Ref)
	if err != nil {
		os.Exit(3)
	}
	inst.Conn().Dispatch()
	fmt.Println("ready")
	<-inst.Conn().Done()
	os.Exit(4)
}
