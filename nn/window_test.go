package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

func TestImageLayerGradients(t *testing.T) {
	for name, c := range map[string]struct {
		layer nn.Layer
		in    []int
	}{
		"convolution":            {&nn.Conv2D{Out: 3, Size: 3}, []int{2, 5, 6}},
		"one channel":            {&nn.Conv2D{Out: 2, Size: 2}, []int{4, 5}},
		"filters of one element": {&nn.Conv2D{Out: 2, Size: 1}, []int{3, 2, 3}},
		"as large as the image":  {&nn.Conv2D{Out: 2, Size: 4}, []int{2, 4, 4}},
		"padding":                {&nn.Conv2D{Out: 2, Size: 3, Padding: 2}, []int{2, 4, 3}},
		"stride":                 {&nn.Conv2D{Out: 3, Size: 3, Stride: 2}, []int{2, 8, 7}},
		"stride beyond size":     {&nn.Conv2D{Out: 2, Size: 2, Stride: 3}, []int{1, 8, 9}},
		"stride and padding":     {&nn.Conv2D{Out: 2, Size: 3, Stride: 2, Padding: 1}, []int{2, 6, 5}},
		"pool":                   {&nn.MaxPool2D{Size: 2}, []int{2, 5, 6}},
		"overlapping pool":       {&nn.MaxPool2D{Size: 3, Stride: 2}, []int{2, 7, 6}},
		"pool with padding":      {&nn.MaxPool2D{Size: 3, Stride: 2, Padding: 1}, []int{1, 6, 7}},
		"rectify":                {&nn.Rectify{}, []int{2, 3, 4}},
		"standardize":            {&nn.Standardize{Mean: .2, Deviation: .3}, []int{2, 3}},
		"images":                 {&nn.Images{Channels: 2}, []int{18}},
		"network": {nn.Chain(
			&nn.Images{Channels: 2, Height: 6, Width: 7}, &nn.Conv2D{Out: 3, Size: 3, Padding: 1}, &nn.MaxPool2D{Size: 2}, &nn.Rectify{},
			&nn.Dropout{Rate: .2}, &nn.Conv2D{Out: 4, Size: 2}, &nn.Relu{Out: 6}, &nn.Linear{Out: 3},
		), []int{84}},
	} {
		t.Run(name, func(t *testing.T) {
			nntest.CheckGradients(t, cpu.New(cpu.Options{}), c.layer, c.in, 4)
		})
	}
}

func TestImageLayerShapes(t *testing.T) {
	for _, c := range []struct {
		layer   nn.Layer
		in, out []int
	}{
		{&nn.Conv2D{Out: 3, Size: 3}, []int{1, 28, 28}, []int{3, 26, 26}},
		{&nn.Conv2D{Out: 3, Size: 3}, []int{28, 28}, []int{3, 26, 26}},
		{&nn.Conv2D{Out: 5, Size: 3, Stride: 2, Padding: 1}, []int{4, 28, 27}, []int{5, 14, 14}},
		{&nn.MaxPool2D{Size: 3}, []int{3, 26, 26}, []int{3, 8, 8}},
		{&nn.MaxPool2D{Size: 3, Stride: 1, Padding: 1}, []int{3, 5, 6}, []int{3, 5, 6}},
		{&nn.Images{}, []int{784}, []int{1, 28, 28}},
		{&nn.Images{Channels: 3}, []int{75}, []int{3, 5, 5}},
		{&nn.Images{Height: 2, Width: 5}, []int{10}, []int{1, 2, 5}},
		{&nn.Images{}, []int{7, 7}, []int{1, 7, 7}},
		{&nn.Rectify{}, []int{3, 4}, []int{3, 4}},
		{&nn.Standardize{Deviation: 1}, []int{3, 4}, []int{3, 4}},
	} {
		got, err := c.layer.Init(c.in, nil, nn.NewBuilder(1))
		require.NoError(t, err)
		require.Equal(t, c.out, got, "%#v", c.layer)
	}
}

func TestImageLayerInitErrors(t *testing.T) {
	used := &nn.Conv2D{Out: 1, Size: 1}
	_, err := used.Init([]int{3, 3}, nil, nn.NewBuilder(1))
	require.NoError(t, err)
	for _, c := range []struct {
		name    string
		layer   nn.Layer
		in, out []int
		want    string
	}{
		{"plain rows", &nn.Conv2D{Out: 1, Size: 1}, []int{9}, nil, "nn.Images"},
		{"no rows", &nn.Conv2D{Out: 1, Size: 1}, []int{1, 0, 3}, nil, "shape [1 0 3]"},
		{"no filters", &nn.Conv2D{Size: 1}, []int{3, 3}, nil, "Out must be at least 1, not 0"},
		{"no size", &nn.Conv2D{Out: 1}, []int{3, 3}, nil, "Size must be at least 1, not 0"},
		{"negative stride", &nn.Conv2D{Out: 1, Size: 1, Stride: -1}, []int{3, 3}, nil, "Stride must be at least 1, not -1"},
		{"negative padding", &nn.Conv2D{Out: 1, Size: 1, Padding: -1}, []int{3, 3}, nil, "Padding must be at least 0 and less than Size (1), not -1"},
		{"window inside padding", &nn.MaxPool2D{Size: 2, Padding: 2}, []int{3, 3}, nil, "Padding must be at least 0 and less than Size (2), not 2"},
		{"too large", nn.Chain(&nn.Images{}, &nn.MaxPool2D{Size: 6, Padding: 1}), []int{9}, nil, "layers.1: a window of 6 by 6"},
		{"pool without size", &nn.MaxPool2D{}, []int{3, 3}, nil, "Size must be at least 1, not 0"},
		{"not square", &nn.Images{}, []int{10}, nil, "cannot read rows of shape [10] as images of shape [1 3 3]"},
		{"other image", &nn.Images{Channels: 2, Height: 2, Width: 2}, []int{10}, nil, "as images of shape [2 2 2]"},
		{"height only", &nn.Images{Height: 5}, []int{10}, nil, "as images of shape [1 5 0]"},
		{"negative channels", &nn.Images{Channels: -1}, []int{10}, nil, "as images of shape [-1"},
		{"wrong output shape", &nn.Conv2D{Out: 1, Size: 1}, []int{3, 3}, []int{9}, "the model needs [9]"},
		{"rectify keeps the shape", &nn.Rectify{}, []int{3}, []int{2}, "the model needs [2]"},
		{"no deviation", &nn.Standardize{Mean: 1}, []int{3}, nil, "Deviation is 0"},
		{"layer used twice", used, []int{3, 3}, nil, "already belongs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.layer.Init(c.in, c.out, nn.NewBuilder(1))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestStandardize(t *testing.T) {
	l := &nn.Standardize{Mean: .1307, Deviation: .3081}
	_, err := l.Init([]int{2}, nil, nn.NewBuilder(1))
	require.NoError(t, err)
	y, _ := l.Forward(&nn.Pass{Backend: cpu.New(cpu.Options{})}, nn.Tensor{Shape: []int{1, 2}, Data: nn.Host([]float32{0, 1})})
	require.InDeltaSlice(t, []float32{-.42421296, 2.8214867}, y.Data.Float32s(), 1e-6)
}

// The first layer computes no gradient of its input, which nothing needs.
func TestFirstImageLayersReturnNoGradient(t *testing.T) {
	for _, l := range []nn.Layer{&nn.Conv2D{Out: 1, Size: 1}, &nn.MaxPool2D{Size: 1}} {
		be, b := cpu.New(cpu.Options{}), nn.NewBuilder(1)
		_, err := l.Init([]int{1, 2, 2}, nil, b)
		require.NoError(t, err)
		_, err = b.Build(be)
		require.NoError(t, err)
		x := nn.Tensor{Shape: []int{1, 1, 2, 2}, Data: nn.Host([]float32{1, 2, 3, 4})}
		y, back := l.Forward(&nn.Pass{Backend: be}, x)
		require.Equal(t, nn.Tensor{}, back(y))
	}
}
