//go:build gpu && cgo && linux

package ncclgroup

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
)

// A call queued on a second stream waits there for the other ranks while the first
// stream continues. The same holds in a graph, at every launch.
func TestQueuedAside(t *testing.T) {
	all := ranks(t, 2, Must, anyOrder)
	call := collective.Call{Kind: collective.KindAllReduce, DType: collective.Int64, Op: collective.Sum, Count: 2}
	continued := make(chan struct{}) // closed when rank 0's first stream has continued without rank 1
	run(t, all, func(ctx context.Context, r *rank) {
		first, err := put(r.workplace, []int64{0, 0})
		assert.NoError(t, err)
		assert.NoError(t, r.AllReduce(ctx, first, collective.Sum)) // connects the ranks
		v, err := put(r.workplace, []int64{1, 2})
		assert.NoError(t, err)
		other, err := put(r.workplace, []int64{3})
		assert.NoError(t, err)
		aside := r.engine.Queued(ctx, call, v, v)
		assert.NoError(t, r.device.Do(ctx, func() error {
			side, err := r.device.NewUrgentStream()
			if err != nil {
				return err
			}
			event, err := r.device.NewEvent(false)
			if err != nil {
				return err
			}
			after := func(later, earlier cuda.Stream) {
				assert.NoError(t, event.Record(earlier))
				assert.NoError(t, later.Wait(event))
			}
			_, at, _ := other.Device()
			beside := func() {
				after(side, r.stream)
				assert.NoError(t, aside(side))
				assert.NoError(t, r.stream.Zero(cuda.Ptr(at), 8))
			}
			if r.Rank() == 1 {
				<-continued
			}
			beside()
			if r.Rank() == 0 {
				assert.NoError(t, r.stream.Sync(ctx))
				close(continued)
			}
			after(r.stream, side)
			graph, err := r.stream.Capture(func() error {
				beside()
				after(r.stream, side)
				return nil
			})
			if err != nil {
				return err
			}
			for range 2 {
				assert.NoError(t, graph.Launch(r.stream))
			}
			assert.NoError(t, r.stream.Sync(ctx))
			assert.NoError(t, graph.Destroy())
			assert.NoError(t, event.Destroy())
			return side.Destroy()
		}))
		got, err := get[int64](r.workplace, v)
		assert.NoError(t, err)
		assert.Equal(t, []int64{8, 16}, got)
	})
}
