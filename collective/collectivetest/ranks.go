// Package collectivetest helps to test collective code. It makes groups of ranks in
// one process for your own tests, and has the conformance suites that every transport
// and engine of this project passes.
package collectivetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// timeout ends a test that hangs.
const timeout = time.Minute

// Ranks runs fn for each of n ranks of a group, concurrently, and returns when all
// have returned. As in any goroutine of a test, fn may call t.Error but not t.Fatal.
// The require functions of testify work as long as they fail on every rank.
func Ranks(t testing.TB, n int, fn func(ctx context.Context, g *collective.Group)) {
	t.Helper()
	Run(t, Local(t, n), fn)
}

// Local makes n groups over the in-process transport, and closes them at the end of
// the test.
func Local(t testing.TB, n int) []*collective.Group {
	views, transports := collective.Local(n)
	return Groups(t, views, transports, collective.Options{})
}

// Machines makes the groups of a job of several machines, "a", "b" and so on, with each
// ranks each, over the in-process transport. It closes them at the end of the test.
func Machines(t testing.TB, machines, each int) []*collective.Group {
	views, transports := collective.Local(machines * each)
	for i := range views {
		views[i].Members = slices.Clone(views[i].Members) // all views share one slice
		for r := range views[i].Members {
			views[i].Members[r].Node = string(rune('a' + r/each))
		}
	}
	return Groups(t, views, transports, collective.Options{})
}

// Groups makes a group of each view and transport, and closes them at the end of the
// test.
func Groups(t testing.TB, views []collective.View, transports []collective.Transport, o collective.Options) []*collective.Group {
	engines := make([]collective.Engine, len(views))
	for r := range engines {
		engines[r] = collective.OverTransport(views[r], transports[r])
	}
	return OverEngines(t, views, engines, o)
}

// OverEngines makes a group of each view and engine, and closes them at the end of
// the test.
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

// Run calls fn for each group, concurrently, and waits for all.
func Run(t testing.TB, groups []*collective.Group, fn func(ctx context.Context, g *collective.Group)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var all sync.WaitGroup
	for _, g := range groups {
		all.Go(func() { fn(ctx, g) })
	}
	all.Wait()
}
