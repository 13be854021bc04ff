package membership

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// How often seeds are joined: quickly at first, then steadily while somebody is
// missing, then now and then for ever. The last heals partitions, which
// memberlist by itself does not once both sides have given each other up.
const (
	joinFirst   = 200 * time.Millisecond
	joinMissing = 5 * time.Second
	joinSettled = 15 * time.Second
	joinAtOnce  = 8
)

// A joiner contacts seeds again and again until its context ends.
type joiner struct {
	self   netip.AddrPort
	seeds  []string                             // host:port
	join   func(addr string) error              // one exchange of states; ended by the transport's Shutdown
	lost   func() (more []string, settled bool) // members that vanished; whether there is a View
	report func(failures []string)              // after each round, sorted
}

func (j *joiner) run(ctx context.Context) {
	gap := joinFirst
	for {
		more, settled := j.lost()
		failures := j.round(ctx, append(slices.Clone(j.seeds), more...))
		if ctx.Err() != nil {
			return
		}
		j.report(failures)
		wait := gap
		gap = min(2*gap, joinMissing)
		if settled {
			wait = time.Duration((0.8 + 0.4*rand.Float64()) * float64(joinSettled))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// round joins every seed, several at a time, and returns what went wrong.
func (j *joiner) round(ctx context.Context, seeds []string) []string {
	failures := make([]string, len(seeds))
	var g errgroup.Group
	g.SetLimit(joinAtOnce)
	for i, seed := range seeds {
		g.Go(func() error {
			failures[i] = j.try(ctx, seed)
			return nil
		})
	}
	_ = g.Wait() // the failures are in the list
	failures = slices.DeleteFunc(failures, func(s string) bool { return s == "" })
	slices.Sort(failures)
	return slices.Compact(failures)
}

// try joins one seed under any of its addresses and returns what went wrong, or
// "". To be its only address ourselves is no failure.
func (j *joiner) try(ctx context.Context, seed string) string {
	addrs, err := resolve(ctx, seed)
	if err != nil {
		return seed + ": " + err.Error()
	}
	failure, joined := "", false
	for _, a := range addrs {
		if a == j.self || ctx.Err() != nil {
			joined = true
			continue
		}
		// memberlist wants a name before the address where names are required.
		if err := j.join("seed/" + a.String()); err != nil {
			failure = seed + ": " + explain(err)
			continue
		}
		joined = true
	}
	if joined {
		return ""
	}
	return failure
}

// resolve finds the addresses of a host:port.
func resolve(ctx context.Context, seed string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(seed)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, err
	}
	ips := make([]netip.Addr, 1)
	if ips[0], err = netip.ParseAddr(host); err != nil {
		if ips, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
			return nil, err
		}
	}
	addrs := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		addrs[i] = netip.AddrPortFrom(ip.Unmap(), uint16(port))
	}
	return addrs, nil
}

// keyTrouble is what memberlist says where the keys of two processes differ, and
// what that means.
var keyTrouble = map[string]string{
	"no installed keys could decrypt":                            "it has another key than this process",
	"remote state is encrypted and encryption is not":            "it has a key, and this process has none",
	"encryption is configured but remote state is not encrypted": "it has no key, and this process has one",
}

// explain makes one line of memberlist's error, and says what its bare EOF
// means: the seed has hung up on us.
func explain(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if _, rest, ok := strings.Cut(text, "failed to join "); ok {
		if _, cause, ok := strings.Cut(rest, ": "); ok {
			text = cause
		}
	}
	for theirs, ours := range keyTrouble {
		if strings.Contains(text, theirs) {
			return ours + ": give both the same key file"
		}
	}
	if strings.HasSuffix(text, "EOF") || strings.Contains(text, "connection reset") {
		return "it hung up: does it use another cluster name, or is it no ringtrain process? (" + text + ")"
	}
	return text
}
