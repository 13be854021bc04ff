package data

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// cifarOf returns records with these labels. Each pixel of record i is i+1.
func cifarOf(labels ...byte) (raw []byte) {
	for i, l := range labels {
		raw = append(append(raw, l), bytes.Repeat([]byte{byte(i + 1)}, 3*32*32)...)
	}
	return raw
}

// cifarDir writes a set whose training files have one to five records.
func cifarDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 5 {
		labels := make([]byte, i+1)
		labels[i] = byte(i + 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("data_batch_%d.bin", i+1)), cifarOf(labels...), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "test_batch.bin"), cifarOf(9, 8), 0o600))
	return dir
}

func TestCIFAR(t *testing.T) {
	dir := cifarDir(t)
	s, err := OpenCIFAR(dir)
	require.NoError(t, err)
	require.Equal(t, 15, s.Train.Rows)
	require.Equal(t, []byte{1, 0, 2, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 5}, s.Train.Labels, "the files in order")
	require.Equal(t, []int{3, 32, 32, 10, 3072}, []int{s.Train.Channels, s.Train.Height, s.Train.Width, s.Train.Classes, s.Train.Features()})
	require.Equal(t, cifarOf(0, 0, 0, 0, 5)[4*3073+1:], s.Train.Image(14))
	require.Equal(t, []byte{9, 8}, s.Test.Labels)
	x, labels := make([]float32, 3072), make([]int32, 1)
	require.NoError(t, s.Test.Gather([]int32{1}, x, labels))
	require.Equal(t, []float32{2. / 255, 2. / 255, 8}, []float32{x[0], x[3071], float32(labels[0])})

	info, err := CheckCIFAR(dir)
	require.NoError(t, err)
	require.Equal(t, Info{TrainRows: 15, TestRows: 2, Channels: 3, Height: 32, Width: 32}, info)
	require.NoError(t, os.Remove(filepath.Join(dir, "data_batch_1.bin")))
	test, err := OpenCIFARTest(dir)
	require.NoError(t, err, "the test images alone")
	require.Equal(t, s.Test, test)
	only, err := CheckCIFARTest(dir)
	require.NoError(t, err)
	require.Equal(t, TestInfo{Rows: 2, Channels: 3, Height: 32, Width: 32}, only)
}

func TestCIFARRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, file string)
		want   string
		late   bool // only reading finds it
	}{
		"missing": {change: func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) },
			want: "the binary version of CIFAR-10, not the one for Python or Matlab"},
		"empty": {change: func(t *testing.T, file string) { require.NoError(t, os.WriteFile(file, nil, 0o600)) },
			want: "the file has 0 bytes, but must have a multiple of 3073"},
		"truncated": {change: func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 5000)) },
			want: "the file has 5000 bytes"},
		"directory": {change: func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Mkdir(file, 0o700))
		}, want: "expected a file of CIFAR-10, but this is a directory"},
		"label": {change: func(t *testing.T, file string) { require.NoError(t, os.WriteFile(file, cifarOf(0, 10), 0o600)) },
			want: "record 1 has the label 10, but CIFAR-10 has classes 0 to 9", late: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, file := range []string{"data_batch_3.bin", "test_batch.bin"} {
				dir := cifarDir(t)
				c.change(t, filepath.Join(dir, file))
				_, err := OpenCIFAR(dir)
				require.ErrorContains(t, err, c.want)
				require.ErrorContains(t, err, file)
				if _, err = CheckCIFAR(dir); !c.late {
					require.ErrorContains(t, err, c.want)
				}
			}
		})
	}
}

// FuzzCIFAR checks that records are read if they are whole and their labels are classes, and
// refused otherwise. The input has labels only: a fuzzer that minimises whole records, of which
// a decoder reads one byte in 3073, does little else.
func FuzzCIFAR(f *testing.F) {
	f.Add([]byte{1, 2}, uint16(0))
	f.Add([]byte{10}, uint16(0))
	f.Add([]byte{1, 10}, uint16(1))
	f.Add([]byte{1}, uint16(2973))
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, labels []byte, cut uint16) {
		raw := cifarOf(labels[:min(len(labels), 8)]...)
		raw = raw[:len(raw)-min(int(cut), len(raw))]
		whole := labels[:len(raw)/cifarRecord]
		var m Images
		err := m.decodeCIFAR(bytes.NewReader(raw))
		if len(raw)%cifarRecord != 0 || slices.ContainsFunc(whole, func(l byte) bool { return l >= cifarClasses }) {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		m.Channels, m.Height, m.Width = 3, 32, 32
		var again []byte
		for i, l := range m.Labels {
			again = append(append(again, l), m.Image(i)...)
		}
		require.True(t, bytes.Equal(raw, again))
	})
}
