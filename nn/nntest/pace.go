package nntest

import (
	"encoding/binary"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// Sizes for testPace.
const (
	paceWidth = 5
	paceRows  = 2 // per step
	paceSteps = 2 // per recording
	paceFirst = 40
	firstRow  = 3 // the first row of step paceFirst
)

// A paced is a pace with the memory of its steps: the data they gather rows from, and what
// they saw.
type paced struct {
	*harness
	pace   nn.Pace
	stream nn.Stream

	data         []float32
	words, order []int32
	pixels       []byte
	ones         []float32

	floats, ints, bytes, single, places, whole, loss nn.Buffer

	saw [paceSteps]sight
}

// A sight has the Buffers in which one step of a recording leaves what it saw.
type sight struct{ x, labels, scaled, again, classes, hyper, mask nn.Buffer }

func newPaced(h *harness, p nn.Pacer, keep, steps int) *paced {
	c := &paced{harness: h, stream: nn.Stream{Seed: 3, First: 1, Stride: 2}}
	c.pace = p.NewPace(nn.PaceConfig{Random: c.stream, Hyper: paceHyper, Keep: keep})
	const rows = 20
	c.data, c.words, c.pixels = h.normals(rows*paceWidth), make([]int32, rows*paceWidth), make([]byte, rows*paceWidth)
	for i := range c.data {
		c.words[i], c.pixels[i] = int32(h.rand.Uint32()), byte(h.rand.Uint32())
	}
	c.order, c.ones = make([]int32, firstRow+paceRows*steps), make([]float32, paceRows*paceWidth)
	for i := range c.order {
		c.order[i] = h.rand.Int32N(rows)
	}
	for i := range c.ones {
		c.ones[i] = 1
	}
	c.floats, c.ints, c.places, c.whole = h.upload(c.data...), h.uploadInts(c.words...), h.uploadInts(c.order...), h.upload(c.ones...)
	c.bytes, c.single, c.loss = h.uploadInts(asWords(c.pixels)...), h.uploadInts(c.words[:rows]...), h.b.Alloc(1)
	const n = paceRows * paceWidth
	for k := range c.saw {
		c.saw[k] = sight{
			x: h.b.Alloc(n), labels: h.b.AllocInts(n), scaled: h.b.Alloc(n),
			again: h.b.Alloc(n), classes: h.b.AllocInts(paceRows),
			hyper: h.b.Alloc(nn.HyperLen), mask: h.b.Alloc(n),
		}
	}
	return c
}

// paceHyper returns hyper-parameters that identify the step.
func paceHyper(step int) (row [nn.HyperLen]float32) {
	for i := range row {
		row[i] = float32(100*step + i)
	}
	return row
}

// steps performs the steps of one recording. The loss of each is twice its second
// hyper-parameter.
func (c *paced) steps() error {
	for _, saw := range c.saw {
		c.pace.Gather(saw.x, c.floats, c.places, paceWidth)
		c.pace.Gather(saw.labels, c.ints, c.places, paceWidth)
		c.pace.GatherBytes(saw.scaled, c.bytes, c.places, paceWidth, 255)
		c.pace.GatherLabelled(saw.again, c.bytes, saw.classes, c.single, c.places, paceWidth, 255)
		c.b.Zero(saw.hyper)
		c.b.Axpy(saw.hyper, 1, c.pace.Hyper())
		c.b.Dropout(saw.mask, c.whole, paceWidth, .5, 4, c.pace.Random())
		c.b.Zero(c.loss)
		c.b.Axpy(c.loss, 2, c.pace.Hyper().Slice(1, 2))
		c.pace.Tick(c.loss, paceRows)
	}
	return nil
}

// found checks what the steps of one recording, starting with step, have left in memory.
func (c *paced) found(step int) {
	losses := make([]float32, paceSteps)
	require.NoError(c, c.pace.Losses(c.Context(), step, losses))
	for k, loss := range losses {
		saw := c.saw[k]
		now := step + k
		rows := c.order[firstRow+paceRows*(now-paceFirst):][:paceRows]
		var x, scaled []float32
		for _, row := range rows {
			at := int(row) * paceWidth
			x = append(x, c.data[at:at+paceWidth]...)
			for _, v := range c.pixels[at : at+paceWidth] {
				scaled = append(scaled, float32(v)/255)
			}
		}
		hyper, stream := paceHyper(now), c.stream
		stream.Step = uint64(now)
		require.Equal(c, x, c.read(saw.x), "step %d", now)
		require.Equal(c, scaled, c.read(saw.scaled), "step %d", now)
		require.Equal(c, hyper[:], c.read(saw.hyper), "step %d", now)
		require.Equal(c, dropped(c.ones, paceWidth, .5, 4, stream), c.read(saw.mask), "step %d", now)
		require.Equal(c, 2*hyper[1], loss, "step %d", now)
		c.sameInts(rows, c.words, saw.labels, paceWidth)
		require.Equal(c, scaled, c.read(saw.again), "step %d", now)
		c.sameInts(rows, c.words[:len(c.words)/paceWidth], saw.classes, 1)
	}
}

// testPace checks that a recording of two steps, made and then repeated, always performs
// the steps that are next.
func testPace(h *harness) {
	pacer, ok := h.b.(nn.Pacer)
	if !ok {
		h.Skip("the backend does not implement nn.Pacer")
	}
	const keep, repeats = 7, 9
	c := newPaced(h, pacer, keep, paceSteps*(repeats+1))
	require.Zero(h, c.pace.Step())
	c.pace.Seek(paceFirst, firstRow)
	replay, err := h.b.Record("pace", c.steps)
	require.NoError(h, err)
	for r := range repeats {
		require.Equal(h, paceFirst+paceSteps*(r+1), c.pace.Step())
		c.found(paceFirst + paceSteps*r)
		require.NoError(h, replay())
	}
	testLosses(h, c.pace, keep, paceFirst+paceSteps*(repeats+1))

	c.pace.Seek(c.pace.Step(), 1) // another row, the same step
	require.NoError(h, c.pace.Losses(h.Context(), c.pace.Step()-1, make([]float32, 1)))
	c.pace.Gather(c.saw[0].x, c.floats, c.places, paceWidth)
	require.Equal(h, c.data[int(c.order[1])*paceWidth:][:paceWidth], h.read(c.saw[0].x)[:paceWidth])
	c.pace.Seek(2, 0)
	require.Equal(h, paceHyper(2), [nn.HyperLen]float32(h.read(c.pace.Hyper())))
	require.ErrorContains(h, c.pace.Losses(h.Context(), 1, make([]float32, 1)), "losses of steps 1 to 1")
}

// testLosses checks that exactly the last keep losses are available.
func testLosses(h *harness, pace nn.Pace, keep, end int) {
	require.Equal(h, end, pace.Step())
	losses := make([]float32, keep)
	require.NoError(h, pace.Losses(h.Context(), end-keep, losses))
	for i, loss := range losses {
		require.Equal(h, float32(2*(100*(end-keep+i)+1)), loss)
	}
	require.ErrorContains(h, pace.Losses(h.Context(), end-keep-1, losses[:1]), "are kept")
	require.ErrorContains(h, pace.Losses(h.Context(), end, losses[:1]), "are kept")
}

// sameInts requires v to be rows of words. On a device it reads v as float32, because a
// Backend cannot read int32.
func (h *harness) sameInts(rows, words []int32, v nn.Buffer, width int) {
	h.Helper()
	if got := v.Int32s(); got != nil {
		for i, row := range rows {
			require.Equal(h, words[int(row)*width:][:width], got[i*width:][:width])
		}
		return
	}
	device, at, _ := v.Device()
	got := bitsOf(h.read(nn.OnDevice(device, at, v.Len(), nn.Float32)))
	for i, row := range rows {
		require.Equal(h, words[int(row)*width:][:width], got[i*width:][:width])
	}
}

// asWords returns the int32s that have these bytes in memory.
func asWords(b []byte) []int32 {
	b = append(b[:len(b):len(b)], make([]byte, (4-len(b)%4)%4)...)
	words := make([]int32, len(b)/4)
	for i := range words {
		words[i] = int32(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return words
}

// bitsOf returns the bits of floats.
func bitsOf(v []float32) []int32 {
	words := make([]int32, len(v))
	for i, x := range v {
		words[i] = int32(math.Float32bits(x))
	}
	return words
}
