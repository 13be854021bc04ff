package trainer_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// groupsOn returns the groups of one rank on each host.
func groupsOn(t *testing.T, hosts []int, o collective.Options) []*collective.Group {
	views, transports := collective.Local(len(hosts))
	for r := range views {
		views[r].Members = slices.Clone(views[r].Members)
		for i, host := range hosts {
			views[r].Members[i].Host = collective.HostID(host)
		}
	}
	return collectivetest.Groups(t, views, transports, o)
}

// equalParams returns n parameters of the given number of bytes.
func equalParams(n, bytes int) *nn.Params {
	p := &nn.Params{Grads: nn.Host(make([]float32, n*bytes/4))}
	for i := range n {
		at := i * bytes / 4
		p.List = append(p.List, &nn.Param{Offset: at, Grads: p.Grads.Slice(at, at+bytes/4)})
	}
	return p
}

// Between hosts, a bucket is as small as the predicted cost of more of them allows. A link
// has the costs of schedule.Network: 25 us, and .8 ns per byte.
func TestChooseBucket(t *testing.T) {
	for name, c := range map[string]struct {
		parameters, bytes int
		buckets           int
	}{
		"long enough for one each":    {8, 1 << 20, 8},
		"too short for one each":      {64, 16 << 10, 2},
		"too short for more than one": {16, 16 << 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := equalParams(c.parameters, c.bytes)
			for _, g := range groupsOn(t, []int{1, 2}, collective.Options{}) {
				bytes := trainer.ChooseBucket(g, p, trainer.Compression{})
				require.Len(t, trainer.Buckets(p, bytes), c.buckets, "%d bytes", bytes)
				if c.buckets > 1 {
					require.Less(t, bytes, trainer.DefaultBucket)
				}
			}
		})
	}
}

// Where cores limit the exchange, or the bits depend on buckets, their size is constant.
func TestChooseBucketByDefault(t *testing.T) {
	p := equalParams(8, 1<<20)
	topk := trainer.Compression{Form: trainer.TopK, Keep: .5}
	for _, g := range groupsOn(t, []int{1, 1}, collective.Options{}) {
		require.Equal(t, trainer.DefaultBucket, trainer.ChooseBucket(g, p, trainer.Compression{}), "on one host")
	}
	for _, g := range groupsOn(t, []int{1, 2}, collective.Options{}) {
		require.Equal(t, trainer.DefaultBucket, trainer.ChooseBucket(g, p, topk))
	}
	for _, g := range groupsOn(t, []int{1, 2}, collective.Options{Order: collective.AnyOrder}) {
		require.Equal(t, trainer.DefaultBucket, trainer.ChooseBucket(g, p, trainer.Compression{}), "in any order")
	}
}
