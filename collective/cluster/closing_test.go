package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// dialled gets a message for each connection to m/1 that a log reports.
type dialled chan struct{}

func (d dialled) Write(line []byte) (int, error) {
	if text := string(line); strings.Contains(text, "msg=connected") && strings.Contains(text, "name=m/1") {
		d <- struct{}{}
	}
	return len(line), nil
}

// Regroup returns a failure of this process alone. Another View would not help.
func TestRegroupReturnsOwnFailure(t *testing.T) {
	noGPU := errors.New("no GPU is left")
	for name, failure := range map[string]error{
		"an error":               noGPU,
		"an error of its engine": &collective.RankError{Rank: 0, Phase: "failed", Err: noGPU},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(deadline(t))
			defer cancel()
			made := 0
			nodes := start(t, cluster.Config{Engine: func(_ context.Context, _ collective.View, base *collective.HostEngine) (collective.Engine, error) {
				if made++; made == 1 {
					return base, nil
				}
				if made > 2 {
					cancel()
				}
				return nil, errors.Join(failure, base.Close())
			}}, 1)
			_, err := nodes[0].Regroup(ctx, groups(t, nodes)[0])
			require.ErrorIs(t, err, noGPU)
			require.Equal(t, 2, made)
		})
	}
}

// A member that closes while the others regroup ends its own Regroup. The others continue
// without it.
func TestCloseDuringRegroup(t *testing.T) {
	reached := make(dialled, 10)
	nodes := start(t, cluster.Config{Cluster: t.Name(), Node: "m", Log: slog.New(slog.NewTextHandler(reached, nil))}, 3)
	gs := groups(t, nodes)
	<-reached // m/2 is the only member that dials m/1

	type result struct {
		g   *collective.Group
		err error
	}
	results := [3]chan result{}
	again := func(i int) {
		results[i] = make(chan result, 1)
		go func() {
			g, err := nodes[i].Regroup(deadline(t), gs[i])
			results[i] <- result{g, err}
		}()
	}
	again(1)
	again(2)
	<-reached // and now both wait for m/0
	require.NoError(t, nodes[2].Close())
	last := <-results[2]
	require.ErrorIs(t, last.err, collective.ErrClosed)
	again(0)
	var left []*collective.Group
	for i := range 2 {
		r := <-results[i]
		require.NoError(t, r.err)
		left = append(left, r.g)
	}
	collectivetest.Run(t, left, sumIs(t, 2))
}
