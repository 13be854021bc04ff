package kernels

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

var entry = regexp.MustCompile(`(?m)^extern "C" __global__ void (?:__launch_bounds__\(1024\) )?(\w+)\(`)

// List has all kernels of the source, in its order.
func TestListIsTheSource(t *testing.T) {
	var names, listed []string
	for _, match := range entry.FindAllStringSubmatch(Source(), -1) {
		names = append(names, match[1])
	}
	for _, k := range List {
		listed = append(listed, k.Name)
		require.NotEmpty(t, k.Equals, k.Name)
	}
	require.Equal(t, names, listed)
	require.NotContains(t, Source(), "#include")
}

func TestSourceHasTheLayoutOfNN(t *testing.T) {
	require.True(t, strings.HasPrefix(Source(), "#define RT_BLOCK_SIZE 4096\n#define RT_HYPER_RATE 0\n"))
	require.Contains(t, Source(), "#define RT_HYPER_LEN 10\n")
}

func TestShapes(t *testing.T) {
	const sms = 132
	for _, c := range []struct {
		shape       Shape
		n           int
		grid, block Dim
	}{
		{Elements, 0, Dim{1, 1, 1}, Dim{256, 1, 1}},
		{Elements, 1280, Dim{5, 1, 1}, Dim{256, 1, 1}},
		{Elements, 118282, Dim{463, 1, 1}, Dim{256, 1, 1}},
		{Elements, 1 << 30, Dim{8 * sms, 1, 1}, Dim{256, 1, 1}},
		{Rows, 128, Dim{16, 1, 1}, Dim{256, 1, 1}},
		{Columns, 100, Dim{4, 1, 1}, Dim{32, 32, 1}},
		{Blocks, 7, Dim{7, 1, 1}, Dim{256, 1, 1}},
		{Parts, 30, Dim{30, 16, 1}, Dim{256, 1, 1}},
		{Parts, 200, Dim{200, 4, 1}, Dim{256, 1, 1}},
		{Parts, 5000, Dim{5000, 1, 1}, Dim{256, 1, 1}},
		{Taps, 30, Dim{30, 16, 1}, Dim{256, 1, 1}},
		{Chains, 9, Dim{9, 1, 1}, Dim{32, 1, 1}},
		{One, 5000, Dim{1, 1, 1}, Dim{1024, 1, 1}},
	} {
		grid, block := c.shape.Of(c.n, sms)
		require.Equal(t, c.grid, grid, "%+v", c)
		require.Equal(t, c.block, block, "%+v", c)
	}
}

func TestPlan(t *testing.T) {
	runs, blocks := Plan([]int{0, 64}, []int{10, 5000})
	require.Equal(t, []Run{{At: 0, N: 10, Norm: 0, Norms: 1}, {At: 64, N: 5000, Norm: 1, Norms: 2}}, runs)
	require.Equal(t, []Block{{0, 0}, {1, 0}, {1, 1}}, blocks)
	require.Equal(t, 4096, nn.BlockSize) // the numbers above assume this
}

// The image for machines without NVRTC was made from the present source, and has all of its
// kernels.
func TestImageIsOfTheSource(t *testing.T) {
	image, err := Image()
	require.NoError(t, err)
	mark, text, _ := strings.Cut(string(image), "\n")
	require.Equal(t, ImageMark(Source()), mark+"\n", "kernels.ptx.gz was made from another source: run go generate ./cuda/kernels")
	require.Contains(t, text, "\n.target sm_"+strings.TrimPrefix(ImageArch, "compute_")+"\n")
	var names []string
	for _, match := range ptxEntry.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	var listed []string
	for _, k := range List {
		listed = append(listed, k.Name)
	}
	require.ElementsMatch(t, listed, names)
	require.NotEqual(t, ImageMark(Source()), ImageMark(Source()+" "))
	_, err = unpack(packed[:len(packed)-9])
	require.ErrorContains(t, err, "go generate")
}

// The image declares blocks of 1024 threads. Otherwise a compiler may use more registers than
// a multiprocessor has.
func TestImageHasBounds(t *testing.T) {
	image, err := Image()
	require.NoError(t, err)
	for _, k := range List {
		_, body, ok := strings.Cut(string(image), ".visible .entry "+k.Name+"(")
		require.True(t, ok, k.Name)
		head, _, _ := strings.Cut(body, "{")
		if _, block := k.Shape.Of(1, 1); block.X*block.Y > threads {
			require.Contains(t, head, ".maxntid 1024", k.Name)
		}
	}
}

var ptxEntry = regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(`)
