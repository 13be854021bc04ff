package collective_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// bases are the engines of a Local job.
func bases(n int) []*collective.HostEngine {
	views, transports := collective.Local(n)
	all := make([]*collective.HostEngine, n)
	for r := range all {
		all[r] = collective.OverTransport(views[r], transports[r])
	}
	return all
}

// agree has each rank agree to a call of its own.
func agree(ctx context.Context, all []*collective.HostEngine, seq uint64, call func(r int) collective.Call) []error {
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for r, b := range all {
		done.Go(func() { errs[r] = b.Agree(ctx, collective.Header{Seq: seq, Call: call(r)}) })
	}
	done.Wait()
	return errs
}

func TestAgree(t *testing.T) {
	sum := func(count int) collective.Call {
		return collective.Call{Kind: collective.KindAllReduce, DType: collective.Float32, Op: collective.Sum, Count: uint64(count)}
	}
	for n := 1; n <= 5; n++ {
		all := bases(n)
		ctx, cancel := context.WithCancel(t.Context())
		for _, err := range agree(ctx, all, 1, func(int) collective.Call { return sum(10) }) {
			require.NoError(t, err)
		}
		cancel()
		for _, err := range agree(t.Context(), all, 2, func(int) collective.Call { return sum(11) }) {
			require.NoError(t, err, "the end of a context after Agree is of no concern")
		}
		if n > 1 {
			for _, err := range agree(t.Context(), all, 3, func(r int) collective.Call { return sum(r / (n - 1)) }) {
				require.ErrorIs(t, err, collective.ErrMismatch)
			}
		}
		for _, b := range all {
			assert.NoError(t, b.Close())
		}
	}
}

// A HostEngine reports, without being called, that it is broken and by which rank; so does its
// Sub, in its own ranks.
func TestFailed(t *testing.T) {
	all := bases(3)
	var subs []*collective.HostEngine
	views, _ := collective.Local(2)
	for self, r := range []int{1, 2} {
		v := views[self]
		sub, err := all[r].Sub(7, v, []int{1, 2})
		require.NoError(t, err)
		subs = append(subs, sub.Host())
	}
	for _, b := range append(all, subs...) {
		select {
		case <-b.Failed():
			require.Fail(t, "nothing has failed")
		default:
			require.NoError(t, b.Err())
		}
	}
	errRain := errors.New("rain")
	all[2].Abort(&collective.RankError{Rank: 2, Phase: "failed", Err: errRain})
	for i, want := range []int{2, 2, 2, 1, 1} {
		b := append(all, subs...)[i]
		<-b.Failed()
		named := new(collective.RankError)
		require.ErrorAs(t, b.Err(), &named)
		require.Equal(t, want, named.Rank)
		require.ErrorIs(t, named, errRain)
	}
	for _, b := range append(subs, all...) {
		require.NoError(t, b.Close())
	}
}
