package main

import (
	"context"
	"fmt"
	"math"

	"github.com/ringtrain/ringtrain/nn/gpu"
)

// A course times networks, and the same networks in PyTorch if there is one.
type course struct {
	table *table
	torch *torch // nil without PyTorch
	clock clock
}

// measure times a network in our ways, with the fastest products, and in all ways that PyTorch
// has for it.
func (c *course) measure(ctx context.Context, n network, kind string, o gpu.Options, ours ...string) error {
	o.Timed = true
	b, err := gpu.New(o)
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Do(ctx, func() error {
		t, err := newTrainer(b, n)
		if err != nil {
			return err
		}
		var ways []way
		for _, name := range ours {
			step, each, err := t.way(name)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", n.name, name, err)
			}
			ways = append(ways, way{name, false, timed(step, each, func() error { return b.Sync(ctx) })})
		}
		theirs := c.torch.ways(ctx, n.name, kind)
		us, errs := c.clock.race(ctx, append(ways, theirs...))
		for i, w := range append(ways, theirs...) {
			switch {
			case !math.IsNaN(us[i]):
				c.table.add(row{n.name, w.name, kind, us[i], w.torch})
			case w.torch:
				c.table.note("%s, %s, PyTorch %s: %v", n.name, kind, w.name, errs[i])
			default:
				return fmt.Errorf("%s, %s, %s: %w", n.name, kind, w.name, errs[i])
			}
		}
		if nodes, err := b.Nodes(byGraph); err == nil {
			c.table.note("%s, %s: %d nodes per step", n.name, kind, nodes)
		}
		return nil
	})
}

// small times the small networks, but not in bfloat16, which is for large products.
func (c *course) small(ctx context.Context, rows int) error {
	for _, k := range kinds[:2] {
		for _, n := range networks(rows) {
			if err := c.measure(ctx, n, k.name, k.options, byLaunch, byGraph, byGraphs); err != nil {
				return err
			}
		}
	}
	return nil
}

// square times the square network. It returns the microseconds of one of its products alone,
// for each kind of numbers.
func (c *course) square(ctx context.Context, width int) (alone map[string]float64, err error) {
	for _, k := range kinds {
		if err := c.measure(ctx, squareOf(width), k.name, k.options, byGraph); err != nil {
			return nil, err
		}
	}
	return products(ctx, width)
}
