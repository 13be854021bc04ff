package collective

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// Trials take no memory. A page that a rank must wait for, or a garbage collection, would count as
// time of the links.
func TestLinkTrialsTakeNoMemory(t *testing.T) {
	const runs, most = 20, 64 << 10
	views, transports := Local(2)
	var all sync.WaitGroup
	for r := range views {
		all.Go(func() {
			e := OverTransport(views[r], transports[r])
			m := newLinkMeter(t.Context(), e)
			m.allocate(most/4, most/4)
			trial := func() {
				_, err := m.exchange(most, 1-r, 1-r)
				assert.NoError(t, err)
				_, _, err = m.timed(most, schedule.Rival{})
				assert.NoError(t, err)
			}
			for range runs { // queues grow, and both ranks know each other's memory
				trial()
			}
			if r == 0 {
				assert.Zero(t, testing.AllocsPerRun(runs, trial))
			} else {
				for range runs + 1 {
					trial()
				}
			}
			m.end()
			assert.NoError(t, e.Close())
		})
	}
	all.Wait()
}
