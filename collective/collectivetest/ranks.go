// Package collectivetest has what tests of collective code need: groups of
// ranks in one process for users' own tests, and the conformance suites that
// every transport and engine of this project passes.
package collectivetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// patience ends a test that would hang; no test waits for it otherwise.
const patience = time.Minute

// Ranks runs fn once for each of n ranks of a group, concurrently, and returns
// when all have returned. fn may call t.Error but not t.Fatal, as in any
// goroutine of a test; the require functions of testify are fine as long as
// every rank fails alike.
func Ranks(t testing.TB, n int, fn func(ctx context.Context, g *collective.Group)) {
	t.Helper()
	Run(t, Local(t, n), fn)
}

// Local makes n groups over the in-process transport, closed at the end of the
// test.
func Local(t testing.TB, n int) []*collective.Group {
	views, transports := collective.Local(n)
	return Groups(t, views, transports, collective.Options{})
}

// Groups makes a group of each view and transport, closed at the end of the
// test.
func Groups(t testing.TB, views []collective.View, transports []collective.Transport, o collective.Options) []*collective.Group {
	engines := make([]collective.Engine, len(views))
	for r := range engines {
		engines[r] = collective.OverTransport(views[r], transports[r])
	}
	return OverEngines(t, views, engines, o)
}

// OverEngines makes a group of each view and engine, closed at the end of the
// test.
func OverEngines(t testing.TB, views []collective.View, engines []collective.Engine, o collective.Options) []*collective.Group {
	groups := make([]*collective.Group, len(views))
	for r := range groups {
		groups[r] = collective.NewGroup(views[r], engines[r], o)
		t.Cleanup(func() {
			if err := groups[r].Close(); err != nil {
				t.Errorf("closing rank %d: %v", r, err)
			}
		})
	}
	return groups
}

// Run calls fn once for each group, concurrently, and waits for all.
func Run(t testing.TB, groups []*collective.Group, fn func(ctx context.Context, g *collective.Group)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all sync.WaitGroup
	for _, g := range groups {
		all.Go(func() { fn(ctx, g) })
	}
	all.Wait()
}
