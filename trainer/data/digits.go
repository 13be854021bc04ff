package data

import (
	"context"
	"runtime"
	"sync"
)

// DigitsOptions says which synthetic digits to draw. The zero value is the
// set that [Digits] keeps.
type DigitsOptions struct {
	Train   int    // training images; 0 or less means 20000
	Test    int    // test images; 0 or less means 4000
	Side    int    // height and width in pixels; 0 or less means 28
	Seed    uint64 // another seed is another set of the same kind
	Workers int    // goroutines that draw; 0 or less means one per core. No influence on the bytes
}

// The two splits of a set, part of every image's seed.
const (
	trainSplit = 1 + iota
	testSplit
)

// Generate draws a training and a test set of digits 0 to 9: white polylines and arcs,
// rotated, sheared, scaled, shifted, drawn by a trembling pen of varying
// width, blurred and with noise on every pixel. The classes are balanced (to one
// image) and in random order; no image is drawn from the same random
// numbers as another, in the same part or the other. The bytes depend on Train, Test,
// Side and Seed alone, not on the machine, its number of cores or the Go version.
//
// It is made to tell models apart after a short training. Measured on the default
// set's test images after 200 steps of Adam (rate .001), as lowest, mean and highest of
// 32 training seeds:
//
//	rows a step  model                                   right, %
//	128          perceptron 784-128-128-10, dropout .2   95.1  95.7  96.2
//	256          the same                                96.4  96.8  97.2
//	512          the same                                97.2  97.4  97.8
//	256          linear (softmax regression)             90.8  90.9  91.1
//
// Longer training does saturate: 2000 steps of 256 rows bring the perceptron to
// 99.5 %. Seeds 1 and 2 gave sets whose means at 256 rows differ by 0.3 points at most.
func Generate(o DigitsOptions) (train, test *Images) {
	return generate(context.Background(), o)
}

// generate is Generate until ctx ends; what it returns then is not whole.
func generate(ctx context.Context, o DigitsOptions) (train, test *Images) {
	o = o.withDefaults()
	return o.part(ctx, o.Train, trainSplit), o.part(ctx, o.Test, testSplit)
}

func (o DigitsOptions) withDefaults() DigitsOptions {
	set := func(v *int, byDefault int) {
		if *v <= 0 {
			*v = byDefault
		}
	}
	set(&o.Train, 20_000)
	set(&o.Test, 4_000)
	set(&o.Side, 28)
	set(&o.Workers, runtime.GOMAXPROCS(0))
	return o
}

// part draws one split. Its images are dealt to the workers in turn.
func (o DigitsOptions) part(ctx context.Context, rows int, split uint64) *Images {
	m := &Images{
		Rows: rows, Height: o.Side, Width: o.Side, Classes: 10,
		Pixels: make([]byte, rows*o.Side*o.Side),
		Labels: digitLabels(rows, o.Seed, split),
	}
	var wg sync.WaitGroup
	for w := range o.Workers {
		wg.Go(func() {
			p := newPen(o.Side, o.Side)
			for i := w; i < rows && ctx.Err() == nil; i += o.Workers {
				p.draw(m.Image(i), int(m.Labels[i]), o.Seed*1000003+uint64(i), split)
			}
		})
	}
	wg.Wait()
	return m
}

// digitLabels returns as many of each class as of the next, shuffled.
func digitLabels(rows int, seed, split uint64) []byte {
	labels := make([]byte, rows)
	for i := range labels {
		labels[i] = byte(i % 10)
	}
	d := newDraws(seed, split)
	for i := rows - 1; i > 0; i-- {
		j := d.below(uint64(i), i+1)
		labels[i], labels[j] = labels[j], labels[i]
	}
	return labels
}
