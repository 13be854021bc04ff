package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// open opens the images that --data names.
func open(source string, seed uint64) (*data.Set, error) {
	dir, isCIFAR := strings.CutPrefix(source, "cifar:")
	switch {
	case source == "generated":
		p := newPatterns(seed)
		return &data.Set{Train: p.images(2000, 1), Test: p.images(200, 2)}, nil
	case isCIFAR && dir != "":
		return data.OpenCIFAR(dir)
	}
	return nil, fmt.Errorf("--data must be generated or cifar:DIR, not %q", source)
}

// The size of generated images is that of CIFAR-10.
const (
	channels, side, classes = 3, 32, 10
	tile                    = 8 // pixels
	tiles                   = side / tile
)

// patterns has the colours of the tiles of each class.
type patterns struct {
	seed   uint64
	colour [classes][channels * tiles * tiles]int
}

func newPatterns(seed uint64) *patterns {
	p, r := &patterns{seed: seed}, rand.New(rand.NewPCG(seed, 0))
	for class := range p.colour {
		for i := range p.colour[class] {
			p.colour[class][i] = r.IntN(120) - 60
		}
	}
	return p
}

// images draws images: the pattern of a random class, shifted at random, under noise.
func (p *patterns) images(rows int, part uint64) *data.Images {
	m := &data.Images{Rows: rows, Channels: channels, Height: side, Width: side, Classes: classes}
	r := rand.New(rand.NewPCG(p.seed, part))
	for range rows {
		class, down, right := r.IntN(classes), r.IntN(side), r.IntN(side)
		m.Labels = append(m.Labels, byte(class))
		for i := range channels * side * side {
			y, x := (i/side+down)%side, (i+right)%side
			colour := p.colour[class][i/(side*side)*tiles*tiles+y/tile*tiles+x/tile]
			m.Pixels = append(m.Pixels, byte(min(max(127+colour+r.IntN(121)-60, 0), 255)))
		}
	}
	return m
}
