package collective_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
)

// Three goroutines are the three ranks of a group; each gives a vector, and
// each gets the sum.
func ExampleAllReduce() {
	views, transports := collective.Local(3)
	var ranks sync.WaitGroup
	sums := make([][]float32, 3)
	for r := range 3 {
		ranks.Go(func() {
			g := collective.NewGroup(views[r], collective.OverTransport(views[r], transports[r]), collective.Options{})
			defer g.Close()
			v := []float32{float32(r), 10, 0.5}
			if err := collective.AllReduce(context.Background(), g, v, collective.Sum); err != nil {
				fmt.Println(err)
			}
			sums[r] = v
			_ = g.Barrier(context.Background()) // no rank leaves before all have finished
		})
	}
	ranks.Wait()
	fmt.Println(sums[0], sums[1], sums[2])
	// Output: [3 30 1.5] [3 30 1.5] [3 30 1.5]
}
