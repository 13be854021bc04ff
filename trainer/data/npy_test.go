package data_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// fixtures are written by testdata/npy/make.py.
const fixtures = "testdata/npy"

// fixture returns pixel i of an image in the fixtures.
func fixture(image, i int) float32 { return float32((image*20+i)*37%256) / 255 }

// images reads all images of a decoder, of 4x5.
func images(d data.ImageDecoder) (out [][]float32, err error) {
	for {
		dst := make([]float32, 20)
		if err := d.Next(dst, 4, 5); err != nil {
			return out, err
		}
		out = append(out, dst)
	}
}

// npy makes a file of version 1.0.
func npy(header, content string) string {
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(header)))) + header + content
}

// Arrays that NumPy wrote hold the same images, whatever their type and order.
func TestNPYOfNumPy(t *testing.T) {
	for name, first := range map[string][]int{
		"u1": {0, 3}, "u1-fortran": {0, 3}, "f4-v2": {0, 3}, "f4-big-fortran-v3": {0, 3}, "f8-rows": {0, 3}, "f8-big-rows-fortran": {0, 3},
		"f4-one": {1, 1}, "f4-one-fortran": {1, 1},
	} {
		content, err := os.ReadFile(filepath.Join(fixtures, name+".npy"))
		require.NoError(t, err)
		d, err := data.NewNPYDecoder(iotest.OneByteReader(bytes.NewReader(content)))
		require.NoError(t, err, name)
		require.NoError(t, d.Fits(4, 5), name)
		got, err := images(d)
		require.Equal(t, io.EOF, err, name)
		require.Len(t, got, first[1], name)
		for k, image := range got {
			for i, v := range image {
				require.Equal(t, fixture(first[0]+k, i), v, "%s: image %d, pixel %d", name, k, i)
			}
		}
		require.Equal(t, io.EOF, d.Next(make([]float32, 20), 4, 5), name)
	}
}

// What is not an array of images is an error that says why.
func TestNPYMistakes(t *testing.T) {
	numpy := func(name string) string {
		content, err := os.ReadFile(filepath.Join(fixtures, name+".npy"))
		require.NoError(t, err)
		return string(content)
	}
	dict := func(descr, order, shape string) string {
		return fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
	}
	for want, file := range map[string]string{
		"it is empty":                               "",
		"not a NumPy file":                          "PK\x03\x04 a zip file",
		"version 4.0 of the NumPy format":           "\x93NUMPY\x04\x00aaaa",
		"truncated: in the length":                  "\x93NUMPY\x02\x00a",
		"a header of 65535 bytes is too long":       "\x93NUMPY\x01\x00\xff\xff",
		"truncated: in the header":                  numpy("u1")[:40],
		`type "<i8" are not supported`:              numpy("i8"),
		"its header does not describe an array":     numpy("records"),
		"not describe an array of numbers: \"a\"":   npy("a", ""),
		"not describe an array of numbers: \"{\\\"": npy("{\"descr\"", ""),
		"has [3]":                                  npy(dict("'|u1'", "False", "(3,)"), "abc"),
		"it has []":                                npy(dict("'|u1'", "False", "()"), "a"),
		"each must be at least 1":                  npy(dict("'|u1'", "False", "(0, 4, 5)"), ""),
		"fits this machine":                        npy(dict("'|u1'", "False", "(99999999999999999999, 4, 5)"), ""),
		"their product does not fit":               npy(dict("'|u1'", "False", "(4294967295, 4294967295, 4294967295)"), ""),
		"numbers: \"{'descr': 1":                   npy(dict("1", "False", "(1, 4, 5)"), ""),
		"'fortran_order': 'True'":                  npy(dict("'|u1'", "'True'", "(1, 4, 5)"), ""),
		"'shape': [1, 4, 5]":                       npy(dict("'|u1'", "False", "[1, 4, 5]"), ""),
		"it has images of 5x4, but the model is f": npy(dict("'|u1'", "False", "(1, 5, 4)"), strings.Repeat("a", 20)),
		"it has images of shape [3 21], but the m": npy(dict("'|u1'", "False", "(3, 21)"), strings.Repeat("a", 63)),
		"promises 2 images, but there are 1":       npy(dict("'|u1'", "False", "(2, 4, 5)"), strings.Repeat("a", 39)),
		"more data after the 1 rows":               npy(dict("'|u1'", "False", "(1, 4, 5)"), strings.Repeat("a", 21)),
		"expected 20 bytes of data, found 19":      npy(dict("'|u1'", "True", "(1, 4, 5)"), strings.Repeat("a", 19)),
		"found more than the expected 20 bytes":    npy(dict("'|u1'", "True", "(1, 4, 5)"), strings.Repeat("a", 21)),
	} {
		d, err := data.NewNPYDecoder(strings.NewReader(file))
		if err == nil {
			_, err = images(d)
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// The images before one that is not finite are read.
func TestNPYNotFinite(t *testing.T) {
	for _, bad := range []uint32{math.Float32bits(float32(math.NaN())), math.Float32bits(float32(math.Inf(-1)))} {
		content := make([]byte, 3*80)
		binary.LittleEndian.PutUint32(content[80+7*4:], bad)
		d, err := data.NewNPYDecoder(strings.NewReader(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5)}", string(content))))
		require.NoError(t, err)
		got, err := images(d)
		require.ErrorContains(t, err, "pixel 7 is")
		require.Len(t, got, 1)
	}
}

// No bytes make a decoder panic, or take more memory than they have.
func FuzzNPY(f *testing.F) {
	names, err := filepath.Glob(filepath.Join(fixtures, "*.npy"))
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, name := range names {
		content, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) { readFuzzed(t, content, data.NewNPYDecoder) })
}

// readFuzzed reads what may be images. There are at most as many as bytes.
func readFuzzed(t *testing.T, content []byte, decoder func(io.Reader) (data.ImageDecoder, error)) {
	d, err := decoder(bytes.NewReader(content))
	if err != nil {
		return
	}
	got, err := images(d)
	require.Error(t, err)
	require.LessOrEqual(t, len(got), len(content))
	for _, image := range got {
		for _, v := range image {
			require.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0))
		}
	}
}
