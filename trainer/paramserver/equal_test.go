package paramserver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// equal checks that a job has the values and the state of the same with AllReduce.
func (j job) equal(t *testing.T) {
	t.Helper()
	j.equals(t, j.reference(t))
}

// reference runs the same job with AllReduce and returns the outcome of rank 0.
func (j job) reference(t *testing.T) outcome {
	t.Helper()
	j.connect, j.servers, j.apart, j.peers = nil, 0, false, false
	want := j.run(t)[0]
	require.NoError(t, want.err)
	return want
}

func (j job) equals(t *testing.T, want outcome) {
	t.Helper()
	for rank, got := range j.run(t) {
		require.NoError(t, got.err, "rank %d", rank)
		require.Equal(t, want.values, got.values, "rank %d", rank)
		require.Equal(t, want.result.Loss, got.result.Loss)
		if rank == 0 {
			require.Equal(t, want.state, got.state)
		}
	}
}

// Any number of servers, among the workers or apart, gives the bits of AllReduce: with
// gradients that leave during the backward pass, by parameter or two at a time, and with those
// that leave after it.
func TestEqualsAllReduce(t *testing.T) {
	most := 8
	if testing.Short() {
		most = 3
	}
	for workers := 1; workers <= most; workers++ {
		usual := job{workers: workers, optimizer: optim.DefaultAdam(), steps: 3}
		want := usual.reference(t)
		for servers := 1; servers <= 4; servers++ {
			for _, apart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d workers %d servers apart %v", workers, servers, apart), func(t *testing.T) {
					j := usual
					j.servers, j.apart, j.bucket = servers, apart, []int{1, 50_000, 0}[(workers+servers)%3]
					j.equals(t, want)
				})
			}
		}
	}
}

// Every optimizer and both reductions give the bits of AllReduce, also where the norm of a
// parameter depends on several servers.
func TestEqualsAllReduceWithEveryOptimizer(t *testing.T) {
	clip := optim.Constant(.01)
	adam, radam, sgd := optim.DefaultAdam(), optim.DefaultRAdam(), optim.DefaultSGD(.1)
	adam.GradClip, radam.GradClip, sgd.GradClip = clip, clip, clip
	adam.L2, adam.L2IsWeightDecay = optim.Constant(.1), false
	never := optim.DefaultAdam()
	never.GradClip, never.UseAverages = optim.Constant(0), false
	for name, o := range map[string]optim.Optimizer{"Adam": adam, "RAdam": radam, "SGD": sgd, "not clipped": never, "unknown": plain{adam}} {
		for _, reduce := range []trainer.Reduce{trainer.ReduceMean, trainer.ReduceSum} {
			t.Run(fmt.Sprint(name, " ", reduce), func(t *testing.T) {
				job{workers: 3, servers: 4, apart: true, bucket: 1, optimizer: o, steps: 8, change: func(_ int, c *trainer.Config) { c.Reduce = reduce }}.equal(t)
			})
		}
	}
}

// plain hides all methods of an optimizer except those of optim.Optimizer.
type plain struct{ optim.Optimizer }

// The transport does not matter, nor does encryption.
func TestEqualsAllReduceOverEveryTransport(t *testing.T) {
	key := secret.New()
	for name, c := range map[string]cluster.Config{
		"tcp": {Transport: cluster.TransportTCP}, "auto": {Transport: cluster.TransportAuto}, "key": {Transport: cluster.TransportTCP, Key: &key},
	} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " apart ", apart), func(t *testing.T) {
				j := job{connect: clustered(c), workers: 3, servers: 3, apart: apart, optimizer: optim.DefaultAdam(), steps: 6}
				want := j.reference(t)
				for _, j.bucket = range []int{0, 1} {
					j.equals(t, want)
				}
			})
		}
	}
}

// A worker sends each gradient once and gets each value once; a server among the workers
// sends its share to each of the others. These are the numbers of a parameter server, 4
// bytes for each parameter up and down.
func TestTraffic(t *testing.T) {
	apart := job{workers: 3, servers: 2, apart: true, optimizer: optim.DefaultSGD(.1), steps: 2}.run(t)
	n := len(apart[0].values)
	for _, o := range apart {
		require.InDelta(t, 2*4*n, o.result.Sent, 2*4*alignment*8, "gradients of two steps")
	}
	among := job{workers: 3, servers: 1, optimizer: optim.DefaultSGD(.1), steps: 2}.run(t)
	require.InDelta(t, 2*4*2*n, among[0].result.Sent, 2*4*alignment*8*2, "values for two workers")
	require.InDelta(t, 2*4*n, among[1].result.Sent, 2*4*alignment*8)
}

// A job resumes with another number of servers, and with the other strategy.
func TestResumesWithOtherServers(t *testing.T) {
	usual := job{workers: 3, optimizer: optim.DefaultAdam()}
	half := func(servers int) outcome {
		j := usual
		j.servers, j.steps = servers, 4
		return j.run(t)[0]
	}
	end := usual
	end.steps = 8
	want := end.run(t)[0]
	for _, c := range []struct {
		before, after int
		apart         bool
	}{{2, 3, false}, {3, 1, true}, {0, 4, true}, {4, 0, false}} {
		from := half(c.before)
		j := usual
		j.steps, j.servers, j.apart = 8, c.after, c.apart
		j.change = func(rank int, c *trainer.Config) {
			if rank == 0 {
				c.From = from.state
				copy(c.Task.Params().Values.Float32s(), from.values)
			}
		}
		for _, got := range j.run(t) {
			require.NoError(t, got.err)
			require.Equal(t, want.values, got.values, "%d servers, then %d", c.before, c.after)
		}
	}
}
