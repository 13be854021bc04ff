//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// lengths include 0, short ones, sizes around those of blocks, and sizes that are not multiples of four.
var lengths = []int{0, 1, 3, 4, 31, 255, 256, 257, 1023, 1024, 1025, 5000}

// parity compares each kernel with the function that it names in List.
var parity = map[string]func(h *harness){
	"zero": func(h *harness) {
		h.vectors(func(n int) {
			y := upload(h, h.corners(n))
			h.launch("zero", n, y, int64(n))
			h.same(nn.Host(make([]float32, n)), y, "n %d", n)
		})
	},
	"copy": func(h *harness) {
		h.vectors(func(n int) {
			x, y := h.corners(n), h.room(n)
			h.launch("copy", n, y, upload(h, x), int64(n))
			h.same(nn.Host(x), y, "n %d", n)
		})
	},
	"scale": func(h *harness) {
		h.vectors(func(n int) {
			y := h.corners(n)
			want, got := h.host(y), upload(h, y)
			h.cpu.Scale(want, 1.7)
			h.launch("scale", n, got, float32(1.7), int64(n))
			h.same(want, got, "n %d", n)
		})
	},
	"axpy": func(h *harness) {
		h.vectors(func(n int) {
			y, x := h.corners(n), h.corners(n)
			want, got := h.host(y), upload(h, y)
			h.cpu.Axpy(want, -.3, h.host(x))
			h.launch("axpy", n, got, float32(-.3), upload(h, x), int64(n))
			h.same(want, got, "n %d", n)
		})
	},
	"rescale": func(h *harness) {
		h.vectors(func(n int) {
			x := h.corners(n)
			want, got := h.host(x), h.room(n)
			h.cpu.Rescale(want, want, 3.2456, -.4242)
			h.launch("rescale", n, got, upload(h, x), float32(3.2456), float32(-.4242), int64(n))
			h.same(want, got, "n %d", n)
		})
	},
	"relu": func(h *harness) {
		h.vectors(func(n int) {
			x := h.corners(n)
			want, got := h.host(x), upload(h, x)
			h.cpu.Relu(want, want)
			h.launch("relu", n, got, got, int64(n))
			h.same(want, got, "n %d", n)
		})
	},
	"relu_grad": func(h *harness) {
		h.vectors(func(n int) {
			dy, y := h.corners(n), h.corners(n)
			want, got := h.host(dy), upload(h, dy)
			h.cpu.ReluGrad(want, want, h.host(y), 1.25)
			h.launch("relu_grad", n, got, got, upload(h, y), float32(1.25), int64(n))
			h.same(want, got, "n %d", n)
		})
	},
	"to_bf16":       func(h *harness) { h.bf16() },
	"from_bf16":     func(h *harness) { h.bf16() },
	"add_bias":      func(h *harness) { h.bias("add_bias", false) },
	"add_bias_relu": func(h *harness) { h.bias("add_bias_relu", true) },
	"sum_rows": func(h *harness) {
		h.matrices(func(rows, columns int) {
			sum, y := h.normals(columns), h.normals(rows*columns)
			want, got := h.host(sum), upload(h, sum)
			h.cpu.SumRows(want, h.host(y))
			h.launch("sum_rows", columns, got, upload(h, y), int32(rows), int32(columns))
			h.near(want, got, 1e-5, "%d by %d", rows, columns)
		})
	},
	"dropout": func(h *harness) {
		streams := []nn.Stream{{Seed: 11}, {Seed: 1 << 60, Step: 1<<40 + 5, First: 3, Stride: 2}}
		h.matrices(func(rows, columns int) {
			for _, s := range streams {
				for _, rate := range []float32{0, .2, .99} {
					x := h.corners(rows * columns)
					want, got := h.host(x), upload(h, x)
					h.cpu.Dropout(want, want, columns, rate, 7, s)
					h.launch("dropout", rows*((columns+3)/4), got, got, int64(rows), int32(columns), LeastBits(rate), 1/(1-rate),
						uint32(7), upload(h, []Random{NewRandom(s)}))
					h.same(want, got, "%d by %d, rate %v", rows, columns, rate)
				}
			}
		})
	},
	"softmax": func(h *harness) {
		h.matrices(func(rows, columns int) {
			x := h.normals(rows * columns)
			x[0] = 80
			want, got := h.host(x), upload(h, x)
			h.cpu.Softmax(want, want, columns)
			h.launch("softmax", rows, got, got, int32(rows), int32(columns))
			h.near(want, got, 1e-7, "%d by %d", rows, columns)
		})
		x := []float32{1, float32(math.NaN()), 2}
		want, got := h.host(x), upload(h, x)
		h.cpu.Softmax(want, want, 3)
		h.launch("softmax", 1, got, got, int32(1), int32(3))
		h.near(want, got, 0, "NaN")
	},
	"cross_entropy":      func(h *harness) { h.crossEntropy() },
	"cross_entropy_grad": func(h *harness) { h.crossEntropy() },
	"correct": func(h *harness) {
		h.matrices(func(rows, columns int) {
			x, labels := h.corners(rows*columns), h.labels(rows, columns)
			want, got := h.host([]float32{2}), upload(h, []float32{2})
			h.cpu.Correct(want, h.host(x), ints(labels))
			h.launch("correct", rows, got, upload(h, x), upload(h, labels), int32(rows), int32(columns))
			h.same(want, got, "%d by %d", rows, columns)
		})
	},
	"softmax_cross_entropy":  func(h *harness) { h.fused() },
	"smoothed_cross_entropy": func(h *harness) { h.smoothedCrossEntropy() }, "smoothed_cross_entropy_grad": func(h *harness) { h.smoothedCrossEntropy() },
	"squared_error": func(h *harness) { h.squaredError() }, "squared_error_grad": func(h *harness) { h.squaredError() },
	"huber_error": func(h *harness) { h.huberError() }, "huber_error_grad": func(h *harness) { h.huberError() },
	"absolute_error": func(h *harness) { h.absoluteError() }, "absolute_error_grad": func(h *harness) { h.absoluteError() },
	"squared_norm":       func(h *harness) { h.squaredNorm() },
	"squared_norm_arena": func(h *harness) { h.arenas() },
	"adam_arena":         func(h *harness) { h.arenas() },
	"sgd_arena":          func(h *harness) { h.arenas() },
	"adam":               func(h *harness) { h.update(true) },
	"sgd":                func(h *harness) { h.update(false) },
	"conv2d":             func(h *harness) { h.conv() },
	"conv2d_input_grad":  func(h *harness) { h.convInputGrad() },
	"conv2d_grad_parts":  func(h *harness) { h.convGrad() },
	"conv2d_grad":        func(h *harness) { h.convGrad() },
	"max_pool":           func(h *harness) { h.pools() },
	"max_pool_grad":      func(h *harness) { h.pools() },
	"gather_bytes":       func(h *harness) { h.gather() },
	"gather_words":       func(h *harness) { h.gather() },
	"tick":               func(h *harness) { h.tick() },
	"follow":             func(h *harness) { h.follow() },
	"vote":               func(h *harness) { h.commit() }, "commit": func(h *harness) { h.commit() },
}

// Each kernel gets its own device, so that a fault of one does not fail the others.
func TestParity(t *testing.T) {
	for _, k := range List {
		t.Run(k.Name, func(t *testing.T) {
			test, ok := parity[k.Name]
			if !ok {
				test = layers[k.Name]
			}
			require.NotNil(t, test, "no test compares it with %s", k.Equals)
			test(newHarness(t))
		})
	}
}

func (h *harness) vectors(f func(n int)) {
	for _, n := range lengths {
		f(n)
	}
}

func (h *harness) matrices(f func(rows, columns int)) {
	for _, size := range [][2]int{{1, 1}, {1, 10}, {3, 7}, {33, 31}, {128, 10}, {128, 128}, {70, 100}} {
		f(size[0], size[1])
	}
}

func (h *harness) bias(kernel string, relu bool) {
	h.matrices(func(rows, columns int) {
		y, bias := h.corners(rows*columns), h.corners(columns)
		want, got := h.host(y), upload(h, y)
		h.cpu.AddBias(want, h.host(bias))
		if relu {
			h.cpu.Relu(want, want)
		}
		h.launch(kernel, rows*columns, got, upload(h, bias), int64(rows*columns), int32(columns))
		h.same(want, got, "%d by %d", rows, columns)
	})
}

func (h *harness) crossEntropy() {
	h.matrices(func(rows, columns int) {
		p, labels := h.normals(rows*columns), h.labels(rows, columns)
		probabilities, loss, d := h.host(p), h.host([]float32{3}), h.host(p)
		h.cpu.Softmax(probabilities, probabilities, columns)
		probabilities.Float32s()[labels[0]] = 0 // an impossible class
		h.cpu.CrossEntropy(d, loss, probabilities, ints(labels))
		gotP, gotLoss := upload(h, probabilities.Float32s()), upload(h, []float32{3})
		h.launch("cross_entropy", rows, gotLoss, gotP, upload(h, labels), int32(rows), int32(columns))
		h.near(loss, gotLoss, 1e-6, "loss of %d by %d", rows, columns)
		h.launch("cross_entropy_grad", rows*columns, gotP, gotP, upload(h, labels), int32(rows), int32(columns))
		h.same(d, gotP, "gradient of %d by %d", rows, columns)
	})
}

func (h *harness) fused() {
	ticket := upload(h, []uint32{0})
	h.matrices(func(rows, columns int) {
		x, labels := h.normals(rows*columns), h.labels(rows, columns)
		p, d, loss, count := h.host(x), h.host(x), h.host([]float32{0}), h.host([]float32{0})
		h.cpu.Softmax(p, p, columns)
		h.cpu.Correct(count, p, ints(labels))
		h.cpu.CrossEntropy(d, loss, p, ints(labels))
		gotP, gotD, gotLoss, gotCount := h.room(len(x)), upload(h, x), upload(h, []float32{3}), upload(h, []float32{5})
		h.launch("softmax_cross_entropy", rows, gotP, gotD, gotLoss, gotCount, gotD, upload(h, labels), int32(rows), int32(columns), h.room(4*rows), ticket)
		h.near(p, gotP, 1e-7, "p of %d by %d", rows, columns)
		h.near(d, gotD, 1e-7, "d of %d by %d", rows, columns)
		h.near(loss, gotLoss, 1e-6, "loss of %d by %d", rows, columns)
		h.same(count, gotCount, "count of %d by %d", rows, columns)
	})
}

// bf16 compares with rounding by math/big, which does not manipulate bits.
func (h *harness) bf16() {
	x := h.corners(5003) // not a multiple of four
	want := make([]float32, len(x))
	for i, v := range x {
		want[i] = v
		if v == v && !math.IsInf(float64(v), 0) && v != 0 {
			digits := min(8, math.Ilogb(float64(v))+134) // fewer below 2^-126
			if digits < 1 {                              // far below the smallest subnormal
				want[i] = float32(math.Copysign(0, float64(v)))
				continue
			}
			rounded, _ := new(big.Float).SetPrec(uint(digits)).SetFloat64(float64(v)).Float64()
			want[i] = float32(rounded)
			if math.Abs(rounded) >= 0x1p128 {
				want[i] = float32(math.Inf(int(math.Copysign(1, rounded))))
			}
		}
	}
	half, y := h.room(len(x)), h.room(len(x))
	h.launch("to_bf16", len(x), half, upload(h, x), int64(len(x)))
	h.launch("from_bf16", len(x), y, half, int64(len(x)))
	h.same(nn.Host(want), y, "rounded to bfloat16")
}

func (h *harness) gather() {
	for _, width := range []int{1, 10, 784} {
		data, words := make([]byte, 50*width), h.corners(50*width)
		for i := range data {
			data[i] = byte(h.r.Uint32())
		}
		order := h.labels(40, 50)
		const first, rows = 8, 32
		classes, wantLabels := h.normals(50), make([]float32, rows)
		for i := range wantLabels {
			wantLabels[i] = classes[order[first+i]]
		}
		wantBytes, wantWords := make([]float32, rows*width), make([]float32, rows*width)
		for i := range wantBytes {
			from := int(order[first+i/width])*width + i%width
			wantBytes[i], wantWords[i] = float32(data[from])/255, words[from]
		}
		bytes, floats := h.room(rows*width), h.room(rows*width)
		at := upload(h, []Progress{{First: first}})
		labels, none := h.room(rows), uintptr(0)
		h.launch("gather_bytes", rows*width, bytes, upload(h, data), labels, upload(h, classes), upload(h, order), at, int32(rows), int32(width), float32(255))
		h.same(nn.Host(wantBytes), bytes, "width %d", width)
		h.same(nn.Host(wantLabels), labels, "labels, width %d", width)
		bytes = h.room(rows * width)
		h.launch("gather_bytes", rows*width, bytes, upload(h, data), none, none, upload(h, order), at, int32(rows), int32(width), float32(255))
		h.same(nn.Host(wantBytes), bytes, "width %d, without labels", width)
		h.launch("gather_words", rows*width, floats, upload(h, words), upload(h, order), at, int32(rows), int32(width))
		h.same(nn.Host(wantWords), floats, "width %d", width)
	}
}

func (h *harness) tick() {
	const tableRows, slots = 3, 5
	table := h.normals(tableRows * nn.HyperLen)
	progress, random := upload(h, []Progress{{Step: 4, First: 100}}), upload(h, []Random{{Seed: 9}})
	hyper, losses, loss := h.room(nn.HyperLen), upload(h, make([]float32, slots)), upload(h, []float32{2.5})
	stop := upload(h, []int32{1})
	for step := range 4 {
		h.launch("tick", 1, progress, int64(10), losses, int32(slots), loss, hyper, upload(h, table), int32(tableRows), random, stop)
		row := (4 + step + 1) % tableRows * nn.HyperLen
		h.same(nn.Host(table[row:row+nn.HyperLen]), hyper, "step %d", step)
	}
	h.same(nn.Host([]float32{2.5, 2.5, 2.5, 0, 2.5}), losses, "those of steps 4 to 7")
	var p [1]Progress
	var r [1]Random
	var stops [1]int32
	download(h, stops[:], stop)
	require.Zero(h.t, stops[0])
	download(h, p[:], progress)
	download(h, r[:], random)
	require.Equal(h.t, Progress{Step: 8, First: 140}, p[0])
	require.Equal(h.t, Random{Seed: 9, Step: 8}, r[0])
	h.launch("tick", 1, progress, int64(0), uintptr(0), int32(0), uintptr(0), uintptr(0), uintptr(0), int32(1), uintptr(0), uintptr(0))
	download(h, p[:], progress)
	require.Equal(h.t, Progress{Step: 9, First: 140}, p[0])
}
