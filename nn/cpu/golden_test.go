package cpu

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
)

// A drawer makes operands that are equal on every processor.
type drawer struct {
	*Backend
	drawn uint32
}

// word returns 32 random bits.
func (d *drawer) word() uint32 {
	d.drawn++
	return nn.Philox([2]uint32{17, 2}, [4]uint32{d.drawn})[0]
}

// floats returns n numbers from -4 to 4, of which some are zero, subnormal or very small.
func (d *drawer) floats(n int) nn.Buffer {
	v := d.Alloc(n)
	for i := range v.Float32s() {
		w := d.word()
		x := float32(int32(w)>>8) * 0x1p-21
		switch w % 61 {
		case 0:
			x = 0
		case 1:
			x *= 0x1p-130
		case 2:
			x *= 0x1p-70
		}
		v.Float32s()[i] = x
	}
	return v
}

// positives returns n numbers from 0 to 1.
func (d *drawer) positives(n int) nn.Buffer {
	v := d.Alloc(n)
	for i := range v.Float32s() {
		v.Float32s()[i] = float32(d.word()>>8) * 0x1p-24
	}
	return v
}

// ints returns n integers below limit.
func (d *drawer) ints(n, limit int) nn.Buffer {
	v := d.AllocInts(n)
	for i := range v.Int32s() {
		v.Int32s()[i] = int32(d.word() % uint32(limit))
	}
	return v
}

// The sizes of operands: odd ones, so that kernels leave some elements to the loops.
const (
	goldenRows, goldenWidth = 9, 37
	goldenSize              = goldenRows * goldenWidth
	goldenBlocks            = nn.BlockSize + 1003 // more than a block of an update
)

// goldens calls the methods that compute, each on operands of its own. They return the results.
var goldens = map[string]func(d *drawer) []nn.Buffer{
	"AddBias": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.AddBias(y, d.floats(goldenWidth)) })
	},
	"SumRows": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenWidth), func(y nn.Buffer) { d.SumRows(y, d.floats(goldenSize)) })
	},
	"Rescale": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.Rescale(y, y, 1./3, .7) })
	},
	"Relu": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.Relu(y, y) })
	},
	"ReluGrad": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.ReluGrad(y, d.floats(goldenSize), y, 1.25) })
	},
	"Dropout": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) {
			d.Dropout(y, y, goldenWidth, .3, 5, nn.Stream{Seed: 1, Step: 2, First: 3, Stride: 4})
		})
	},
	"Softmax": func(d *drawer) []nn.Buffer {
		return changed(d.floats(200*goldenWidth), func(y nn.Buffer) { d.Softmax(y, y, goldenWidth) })
	},
	"CrossEntropy": func(d *drawer) []nn.Buffer {
		loss, p := d.Alloc(1), d.positives(goldenSize)
		d.CrossEntropy(p, loss, p, d.ints(goldenRows, goldenWidth))
		return []nn.Buffer{loss, p}
	},
	"SmoothedCrossEntropy": func(d *drawer) []nn.Buffer {
		loss, p := d.Alloc(1), d.positives(goldenSize)
		d.SmoothedCrossEntropy(p, loss, p, d.ints(goldenRows, goldenWidth), .1)
		return []nn.Buffer{loss, p}
	},
	"SquaredError": func(d *drawer) []nn.Buffer {
		loss, y := d.Alloc(1), d.floats(goldenSize)
		d.SquaredError(y, loss, y, d.floats(goldenSize))
		return []nn.Buffer{loss, y}
	},
	"HuberError": func(d *drawer) []nn.Buffer {
		loss, y := d.Alloc(1), d.floats(goldenSize)
		d.HuberError(y, loss, y, d.floats(goldenSize), 1.1)
		return []nn.Buffer{loss, y}
	},
	"AbsoluteError": func(d *drawer) []nn.Buffer {
		loss, y := d.Alloc(1), d.floats(goldenSize)
		d.AbsoluteError(y, loss, y, d.floats(goldenSize))
		return []nn.Buffer{loss, y}
	},
	"Correct": func(d *drawer) []nn.Buffer {
		return changed(d.Alloc(1), func(y nn.Buffer) { d.Correct(y, d.floats(4*goldenSize), d.ints(4*goldenSize/3, 3)) })
	},
	"Gelu": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.Gelu(y, y) })
	},
	"GeluGrad": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.GeluGrad(y, y, d.floats(goldenSize)) })
	},
	"Maxout": func(d *drawer) []nn.Buffer {
		return changed(d.Alloc(goldenSize), func(y nn.Buffer) { d.Maxout(y, d.floats(3*goldenSize), 3) })
	},
	"MaxoutGrad": func(d *drawer) []nn.Buffer {
		return changed(d.Alloc(3*goldenSize), func(y nn.Buffer) { d.MaxoutGrad(y, d.floats(goldenSize), d.floats(3*goldenSize), 3) })
	},
	"LayerNorm": func(d *drawer) []nn.Buffer {
		return rowsOfEachWidth(func(width int) []nn.Buffer {
			y, moments := d.Alloc(goldenRows*width), d.Alloc(2*goldenRows)
			d.LayerNorm(y, moments, d.floats(goldenRows*width), d.floats(width), d.floats(width), 1e-5)
			return []nn.Buffer{y, moments}
		})
	},
	"LayerNormGrad": func(d *drawer) []nn.Buffer {
		return rowsOfEachWidth(func(width int) []nn.Buffer {
			dx, dg, db := d.Alloc(goldenRows*width), d.floats(width), d.floats(width)
			d.LayerNormGrad(dx, dg, db, d.floats(goldenRows*width), d.floats(goldenRows*width), d.positives(2*goldenRows), d.floats(width))
			return []nn.Buffer{dx, dg, db}
		})
	},
	"ChannelMoments": func(d *drawer) []nn.Buffer {
		m := d.moments()
		d.ChannelMoments(m, d.floats(goldenSize))
		return []nn.Buffer{m.Mean, m.Variance}
	},
	"BatchNorm": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.BatchNorm(y, y, d.floats(3), d.floats(3), d.moments()) })
	},
	"BatchNormGrad": func(d *drawer) []nn.Buffer {
		dx, dg, db := d.Alloc(goldenSize), d.floats(3), d.floats(3)
		d.BatchNormGrad(dx, dg, db, d.floats(goldenSize), d.floats(goldenSize), d.floats(3), d.moments())
		return []nn.Buffer{dx, dg, db}
	},
	"Add": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.Add(y, y, d.floats(goldenSize)) })
	},
	"Insert": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.Insert(y, d.floats(5*goldenRows), goldenWidth, 3, 5) })
	},
	"Extract": func(d *drawer) []nn.Buffer {
		return changed(d.Alloc(5*goldenRows), func(x nn.Buffer) { d.Extract(x, d.floats(goldenSize), goldenWidth, 3, 5) })
	},
	"Embed": func(d *drawer) []nn.Buffer {
		return changed(d.Alloc(goldenSize), func(y nn.Buffer) { d.Embed(y, d.floats(6*goldenWidth), d.ints(goldenRows, 6), goldenWidth) })
	},
	"EmbedGrad": func(d *drawer) []nn.Buffer {
		return changed(d.floats(6*goldenWidth), func(y nn.Buffer) { d.EmbedGrad(y, d.floats(goldenSize), d.ints(goldenRows, 6), goldenWidth) })
	},
	"Scale": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.Scale(y, 1./3) })
	},
	"Axpy": func(d *drawer) []nn.Buffer {
		return changed(d.floats(goldenSize), func(y nn.Buffer) { d.Axpy(y, 1./3, d.floats(goldenSize)) })
	},
	"SquaredNorm": func(d *drawer) []nn.Buffer {
		return changed(d.Alloc(2), func(sums nn.Buffer) {
			d.SquaredNorm(sums, d.floats(goldenBlocks), d.floats(goldenBlocks), d.hyper())
		})
	},
	"Adam": func(d *drawer) []nn.Buffer {
		w, m, v, average := d.floats(goldenBlocks), d.floats(goldenBlocks), d.positives(goldenBlocks), d.floats(goldenBlocks)
		d.Adam(w, d.floats(goldenBlocks), m, v, average, d.positives(2), d.hyper())
		return []nn.Buffer{w, m, v, average}
	},
	"SGD": func(d *drawer) []nn.Buffer {
		w, average := d.floats(goldenBlocks), d.floats(goldenBlocks)
		d.SGD(w, d.floats(goldenBlocks), average, d.positives(2), d.hyper())
		return []nn.Buffer{w, average}
	},
	"Gemm": func(d *drawer) []nn.Buffer {
		const m, n, k = 13, 21, 300 // more than a block of the inner dimension
		y, z := d.floats(m*n), d.floats(m*n)
		d.Gemm(y, d.floats(m*k), d.floats(k*n), m, n, k, false, true, 1)
		d.Gemm(z, d.floats(m*k), d.floats(k*n), m, n, k, true, false, 0)
		return []nn.Buffer{y, z}
	},
	"Attention": func(d *drawer) []nn.Buffer {
		y, weights := d.Alloc(2*70*2*9), d.Alloc(goldenHeads.Weights(2))
		d.Attention(y, weights, d.floats(2*70*3*2*9), goldenHeads)
		return []nn.Buffer{y, weights}
	},
	"AttentionGrad": func(d *drawer) []nn.Buffer {
		y, weights, qkv := d.Alloc(2*70*2*9), d.Alloc(goldenHeads.Weights(2)), d.floats(2*70*3*2*9)
		d.Attention(y, weights, qkv, goldenHeads)
		return changed(d.Alloc(qkv.Len()), func(dqkv nn.Buffer) { d.AttentionGrad(dqkv, d.floats(y.Len()), weights, qkv, goldenHeads) })
	},
	"Conv2D": func(d *drawer) []nn.Buffer {
		return eachWindow(func(s nn.Window) []nn.Buffer {
			y := d.Alloc(3 * 4 * s.Plane())
			d.Conv2D(y, d.floats(3*s.In()), d.floats(4*2*9), d.floats(4), s)
			return []nn.Buffer{y}
		})
	},
	"Conv2DGrad": func(d *drawer) []nn.Buffer {
		return eachWindow(func(s nn.Window) []nn.Buffer {
			dw, db := d.floats(4*2*9), d.floats(4)
			d.Conv2DGrad(dw, db, d.floats(3*4*s.Plane()), d.floats(3*s.In()), s)
			return []nn.Buffer{dw, db}
		})
	},
	"Conv2DInputGrad": func(d *drawer) []nn.Buffer {
		return eachWindow(func(s nn.Window) []nn.Buffer {
			return changed(d.Alloc(3*s.In()), func(dx nn.Buffer) { d.Conv2DInputGrad(dx, d.floats(3*4*s.Plane()), d.floats(4*2*9), s) })
		})
	},
	"MaxPool": func(d *drawer) []nn.Buffer {
		return eachWindow(func(s nn.Window) []nn.Buffer {
			return changed(d.Alloc(3*2*s.Plane()), func(y nn.Buffer) { d.MaxPool(y, d.floats(3*s.In()), s) })
		})
	},
	"MaxPoolGrad": func(d *drawer) []nn.Buffer {
		return eachWindow(func(s nn.Window) []nn.Buffer {
			x, y := d.floats(3*s.In()), d.Alloc(3*2*s.Plane())
			d.MaxPool(y, x, s)
			return changed(d.Alloc(x.Len()), func(dx nn.Buffer) { d.MaxPoolGrad(dx, d.floats(y.Len()), x, y, s) })
		})
	},
	"AvgPool": func(d *drawer) []nn.Buffer {
		return eachWindow(func(s nn.Window) []nn.Buffer {
			return changed(d.Alloc(3*2*s.Plane()), func(y nn.Buffer) { d.AvgPool(y, d.floats(3*s.In()), s) })
		})
	},
	"AvgPoolGrad": func(d *drawer) []nn.Buffer {
		return eachWindow(func(s nn.Window) []nn.Buffer {
			return changed(d.Alloc(3*s.In()), func(dx nn.Buffer) { d.AvgPoolGrad(dx, d.floats(3*2*s.Plane()), s) })
		})
	},
}

// goldenHeads has more positions than attention takes queries at once.
var goldenHeads = nn.Heads{Positions: 70, Heads: 2, Width: 9, Causal: true}

// changed returns y after f.
func changed(y nn.Buffer, f func(y nn.Buffer)) []nn.Buffer {
	f(y)
	return []nn.Buffer{y}
}

// rowsOfEachWidth returns the results of f for rows that leave a rest after kernels, and for whole
// blocks, for which some kernels take the row at once.
func rowsOfEachWidth(f func(width int) []nn.Buffer) []nn.Buffer {
	return append(f(goldenWidth), f(48)...)
}

// eachWindow returns the results of f for windows of images with two channels.
func eachWindow(f func(s nn.Window) []nn.Buffer) (all []nn.Buffer) {
	for _, s := range []nn.Window{
		{Channels: 2, Height: 11, Width: 13, Size: 3, Stride: 1},
		{Channels: 2, Height: 11, Width: 13, Size: 3, Stride: 1, Padding: 1},
		{Channels: 2, Height: 12, Width: 13, Size: 3, Stride: 2, Padding: 1},
	} {
		all = append(all, f(s)...)
	}
	return all
}

// moments returns those of three channels.
func (d *drawer) moments() nn.Moments {
	return nn.Moments{Mean: d.floats(3), Variance: d.positives(3), Plane: goldenWidth, Eps: 1e-5}
}

// hyper returns terms that all take part.
func (d *drawer) hyper() nn.Buffer {
	h := d.Alloc(nn.HyperLen)
	for i, v := range map[int]float32{
		nn.HyperRate: .003, nn.HyperBeta1: .9, nn.HyperMix1: .1, nn.HyperBeta2: .999, nn.HyperMix2: .001, nn.HyperEps: 1e-8,
		nn.HyperL2: .01, nn.HyperClip: .25, nn.HyperDecay: .0001, nn.HyperAverage: .2,
	} {
		h.Float32s()[i] = v
	}
	return h
}

// goldenFile has a line with the name of each method and the hash of its results. Every processor
// and every build must have these bits. After a change on purpose,
//
//	UPDATE_BITS=1 go test ./nn/cpu -run TestGoldenBits
//
// writes the file.
const goldenFile = "testdata/bits.txt"

func TestGoldenBits(t *testing.T) {
	names := make([]string, 0, len(goldens))
	for name := range goldens {
		names = append(names, name)
	}
	slices.Sort(names)
	var got strings.Builder
	for _, name := range names {
		d, sum := &drawer{Backend: New(Options{BLAS: sgemm.New()})}, sha256.New()
		for _, result := range goldens[name](d) {
			require.NoError(t, binary.Write(sum, binary.LittleEndian, result.Float32s()))
			for _, x := range result.Float32s() {
				require.False(t, x != x, "%s gives NaN, whose bits differ between processors", name)
			}
		}
		fmt.Fprintf(&got, "%s %x\n", name, sum.Sum(nil)[:8])
	}
	if os.Getenv("UPDATE_BITS") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(goldenFile, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

// Every method that computes is in the golden file.
func TestGoldenBitsHaveEveryMethod(t *testing.T) {
	others := []string{"Alloc", "AllocInts", "Temp", "Recycle", "Copy", "CopyInts", "Read", "Zero", "Record", "Do", "Sync", "Fail", "Close"}
	all := reflect.TypeFor[nn.Backend]()
	for i := range all.NumMethod() {
		if name := all.Method(i).Name; !slices.Contains(others, name) {
			require.Contains(t, goldens, name)
		}
	}
}
