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

// Seeds are joined again and again: at short intervals at first, then steadily
// while a process is missing, then rarely. Members of the View that gossip has given
// up are joined like seeds. That heals partitions, which memberlist cannot do once
// both sides have given each other up. Agent.introduce and Agent.rouse have further
// addresses joined once, without delay.
const (
	awayMost    = time.Hour              // for how long a lost member is joined
	joinFirst   = 200 * time.Millisecond // first interval, which doubles
	joinMissing = 5 * time.Second        // up to this
	joinSettled = 15 * time.Second       // interval once there is a View
	joinAtOnce  = 8                      // concurrent attempts
)

// A joiner joins seeds in rounds until its context ends.
type joiner struct {
	self   netip.AddrPort
	seeds  []string                             // host:port
	join   func(addr string) error              // exchanges states once; the transport's Shutdown ends it
	check  func()                               // before each round, while there is no View
	lost   func() (more []string, hasView bool) // addresses of lost members; whether there is a View
	met    func() []string                      // addresses to join once
	soon   <-chan struct{}                      // has a value if there are some
	report func(failures []Seed, hopeless bool) // after each round, sorted
}

// An attempt is the result of joining one seed.
type attempt struct {
	seed   Seed // if it failed
	joined bool
	self   bool // the seed is this process
}

func (j *joiner) run(ctx context.Context) {
	gap := joinFirst
	for {
		more, hasView := j.lost()
		if !hasView {
			j.check()
		}
		tries := j.round(ctx, append(slices.Clone(j.seeds), more...))
		if ctx.Err() != nil {
			return
		}
		j.report(failed(tries), hopeless(tries))
		wait := gap
		gap = min(2*gap, joinMissing)
		if hasView {
			wait = time.Duration((0.8 + 0.4*rand.Float64()) * float64(joinSettled))
		}
		if !j.rest(ctx, wait) {
			return
		}
	}
}

// rest waits for the next round, and joins who must be joined at once. It returns false when ctx
// ends.
func (j *joiner) rest(ctx context.Context, wait time.Duration) bool {
	next := time.NewTimer(wait)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			return true
		case <-j.soon:
			j.round(ctx, j.met()) // in vain if they are gone, which gossip will notice
		case <-ctx.Done():
			return false
		}
	}
}

// round joins every seed, several at a time.
func (j *joiner) round(ctx context.Context, seeds []string) []attempt {
	tries := make([]attempt, len(seeds))
	var g errgroup.Group
	g.SetLimit(joinAtOnce)
	for i, seed := range seeds {
		g.Go(func() error {
			tries[i] = j.try(ctx, seed)
			return nil
		})
	}
	_ = g.Wait() // the failures are in the list
	return tries
}

// failed returns the seeds that could not be joined, sorted.
func failed(tries []attempt) []Seed {
	var list []Seed
	for _, t := range tries {
		if !t.joined && !t.self {
			list = append(list, t.seed)
		}
	}
	slices.SortFunc(list, func(a, b Seed) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(list)
}

// hopeless reports whether every seed rejected this process.
func hopeless(tries []attempt) bool {
	list := failed(tries)
	return len(list) > 0 && !slices.ContainsFunc(tries, func(t attempt) bool { return t.joined }) &&
		!slices.ContainsFunc(list, func(s Seed) bool { return !s.Rejected })
}

// try joins one seed at any of its addresses. It is no failure if the only address
// is our own.
func (j *joiner) try(ctx context.Context, seed string) attempt {
	addrs, err := resolve(ctx, seed)
	if err != nil {
		return attempt{seed: Seed{Addr: seed, Problem: "cannot be found: " + err.Error()}}
	}
	t := attempt{seed: Seed{Addr: seed}}
	refused := 0
	for _, a := range addrs {
		if a == j.self || ctx.Err() != nil {
			t.self = true
			continue
		}
		// With RequireNodeNames, memberlist expects a name before the address.
		if err := j.join("seed/" + a.String()); err != nil {
			if t.seed.Problem, t.seed.Rejected = explain(err); t.seed.Problem == refusal {
				refused++
			}
			continue
		}
		t.joined = true
	}
	t.seed.Refused = refused == len(addrs)
	return t
}

// resolve returns the addresses of a host:port.
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
