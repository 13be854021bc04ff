package collective_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
)

// A counter counts the messages that a Transport sends.
type counter struct {
	collective.Transport
	sent int
}

func (c *counter) Send(ctx context.Context, to int, h *collective.Header, parts [][]byte) error {
	c.sent++
	return c.Transport.Send(ctx, to, h, parts)
}

// Abilities leaves out those that bypass Send.
func (c *counter) Abilities() collective.Abilities {
	can := collective.AbilitiesOf(c.Transport)
	can.Post, can.Reduce, can.Show = nil, nil, nil
	return can
}

// A wrapper passes on the abilities that stay true. Without a method Abilities it
// would have none.
func ExampleAbilitiesOf() {
	views, transports := collective.Local(2)
	counters, groups := make([]*counter, 2), make([]*collective.Group, 2)
	var ranks sync.WaitGroup
	for r := range counters {
		counters[r] = &counter{Transport: transports[r]}
		groups[r] = collective.NewGroup(views[r], collective.OverTransport(views[r], counters[r]), collective.Options{})
		ranks.Go(func() {
			if err := collective.AllReduce(context.Background(), groups[r], []float32{1}, collective.Sum); err != nil {
				fmt.Println(err)
			}
		})
	}
	ranks.Wait()
	for r, c := range counters {
		_ = groups[r].Close()
		fmt.Printf("rank %d sent %d message\n", r, c.sent)
	}
	// Output:
	// rank 0 sent 1 message
	// rank 1 sent 1 message
}
