package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// rawIDX returns the bytes of an IDX file with the given header fields.
func rawIDX(typ byte, dims []uint32, data ...byte) []byte {
	b := []byte{0, 0, typ, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return append(b, data...)
}

func gzipped(t testing.TB, members ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, m := range members {
		z := gzip.NewWriter(&b)
		_, err := z.Write(m)
		require.NoError(t, err)
		require.NoError(t, z.Close())
	}
	return b.Bytes()
}

func TestIDXRoundTrip(t *testing.T) {
	big := make([]byte, 3*idxFirstRead+5)
	for i := range big {
		big[i] = byte(i * i >> 7)
	}
	for _, x := range []*IDX{
		{Dims: []int{1}, Data: []byte{7}},
		{Dims: []int{2, 3, 2}, Data: []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}},
		{Dims: []int{len(big)}, Data: big},
	} {
		for _, name := range []string{"a-idx", "a-idx.gz"} {
			path := filepath.Join(t.TempDir(), name)
			require.NoError(t, WriteIDX(path, x))
			got, err := ReadIDX(path)
			require.NoError(t, err)
			require.Equal(t, x, got)
			dims, err := checkIDX(path)
			require.NoError(t, err)
			require.Equal(t, x.Dims, dims)
		}
	}
}

func TestIDXBytes(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, (&IDX{Dims: []int{2, 1}, Data: []byte{5, 6}}).Encode(&b))
	require.Equal(t, []byte{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 5, 6}, b.Bytes())
}

// Compression is detected from the content: the names here say the opposite.
func TestIDXCompressionIsDetectedByContent(t *testing.T) {
	raw := rawIDX(8, []uint32{2}, 1, 2)
	for name, content := range map[string][]byte{
		"plain.gz": raw, "zipped": gzipped(t, raw), "two members": gzipped(t, raw[:5], raw[5:]),
		"padded": append(gzipped(t, raw), make([]byte, 512)...), "padded by a byte": append(gzipped(t, raw), 0),
		"much padding": append(gzipped(t, raw[:5], raw[5:]), make([]byte, 100_000)...), "empty members": gzipped(t, nil, raw, nil, nil),
	} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		x, err := ReadIDX(path)
		require.NoError(t, err, name)
		require.Equal(t, []byte{1, 2}, x.Data)
		_, err = checkIDX(path)
		require.NoError(t, err, name)
	}
}

func TestIDXErrors(t *testing.T) {
	raw := rawIDX(8, []uint32{2, 2}, 1, 2, 3, 4)
	zipped := gzipped(t, raw)
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty file":           {nil, "truncated: the file ends after 0 bytes, but an IDX header has at least 8"},
		"not IDX":              {[]byte("PNG and so on"), "it starts with 50 4e 47 20, but IDX starts with 00 00"},
		"floats":               {rawIDX(0x0d, []uint32{1}, 0, 0, 0, 0), "IDX element type 0x0d is not supported; only unsigned bytes (0x08) are"},
		"no dimensions":        {rawIDX(8, nil), "IDX with 0 dimensions"},
		"many dimensions":      {rawIDX(8, make([]uint32, 9)), "IDX with 9 dimensions"},
		"zero dimension":       {rawIDX(8, []uint32{3, 0}), "dimensions [3 0]: each must be at least 1"},
		"partial header":       {raw[:9], "truncated: a header with 2 dimensions has 12 bytes, but the file ends after 9"},
		"truncated data":       {raw[:15], "the header promises 4 bytes of data (dimensions [2 2]), but there are 3"},
		"data too long":        {append(bytes.Clone(raw), 5), "the header promises 4 bytes of data (dimensions [2 2]), but there are 5"},
		"huge dimensions":      {rawIDX(8, []uint32{1 << 30, 1 << 30, 1 << 30}), "does not fit into memory"},
		"large, no data":       {rawIDX(8, []uint32{1 << 30}), "the header promises 1073741824 bytes of data"},
		"zipped, truncated":    {gzipped(t, raw[:15]), "expected 4 bytes of data, found 3 (dimensions [2 2])"},
		"zipped, too long":     {gzipped(t, append(bytes.Clone(raw), 5)), "more"},
		"zipped, large":        {gzipped(t, rawIDX(8, []uint32{1 << 30}, 1)), "truncated: the header promises 1073741824 bytes of data (dimensions [1073741824]), which 33 bytes of gzip cannot hold"},
		"truncated zip file":   {zipped[:len(zipped)-6], "truncated: the gzip data ends early"},
		"truncated zip header": {zipped[:5], "truncated: in the gzip header"},
		"truncated member":     {append(gzipped(t, raw[:5]), gzipped(t, raw[5:])[:12]...), "truncated"},
		"member's header":      {append(gzipped(t, raw[:5]), 0x1f, 0x8b, 8), "truncated: in the header of a later gzip member"},
		"garbage":              {append(bytes.Clone(zipped), "garbage"...), "trailing garbage: after the gzip data there is something other than more gzip data or zeros"},
		"garbage, 1 byte":      {append(bytes.Clone(zipped), 0x1f), "trailing garbage"},
		"zeros, garbage":       {append(append(bytes.Clone(zipped), make([]byte, 5000)...), 7), "trailing garbage"},
		"short and garbage":    {append(gzipped(t, raw[:15]), 7), "trailing garbage: after the gzip data there is something other than more gzip data or zeros, and there are 3 bytes of data instead of 4"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file-idx")
			require.NoError(t, os.WriteFile(path, c.content, 0o600))
			_, err := ReadIDX(path)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
			_, err = checkIDX(path)
			require.Error(t, err, "checkIDX finds it too")
			require.ErrorContains(t, err, path)
		})
	}
	// checkIDX looks only at the end, which is that of an intact file here.
	path := filepath.Join(t.TempDir(), "file-idx")
	require.NoError(t, os.WriteFile(path, append(append(bytes.Clone(zipped), 0), zipped...), 0o600))
	_, err := ReadIDX(path)
	require.ErrorContains(t, err, "trailing garbage")
	_, err = ReadIDX(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = ReadIDX(t.TempDir())
	require.ErrorContains(t, err, "but this is a directory")
}

// A few KB of gzip must not allocate the memory that their header promises, and a sparse
// file must not allocate any.
func TestMemoryIsAllocatedAsBytesArrive(t *testing.T) {
	dir := t.TempDir()
	bomb := filepath.Join(dir, "bomb")
	zeros := make([]byte, 3<<20)
	require.NoError(t, os.WriteFile(bomb, append(gzipped(t, rawIDX(8, []uint32{3_200_000}), zeros), make([]byte, 8)...), 0o600))
	require.Less(t, allocated(func() {
		_, err := ReadIDX(bomb)
		require.ErrorContains(t, err, "truncated: expected 3200000 bytes of data, found 3145728")
	}), uint64(9<<20))

	sparse := filepath.Join(dir, "sparse")
	require.NoError(t, os.WriteFile(sparse, rawIDX(8, []uint32{1 << 31, 39}), 0o600))
	if err := os.Truncate(sparse, 12+39<<31); err != nil { // 80 GB
		t.Skipf("cannot create a sparse file: %v", err)
	}
	require.Less(t, allocated(func() {
		dims, err := checkIDX(sparse)
		require.NoError(t, err)
		require.Equal(t, []int{1 << 31, 39}, dims)
	}), uint64(1<<20))
}

// allocated returns the total number of bytes that f allocates on the heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestDamagedGzipIsAnError(t *testing.T) {
	content := gzipped(t, rawIDX(8, []uint32{100}, make([]byte, 100)...))
	content[len(content)-8]++ // its checksum
	path := filepath.Join(t.TempDir(), "a.gz")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	_, err := ReadIDX(path)
	require.ErrorIs(t, err, gzip.ErrChecksum)
}

func TestWriteIDXErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, x := range []*IDX{{}, {Dims: []int{2}, Data: []byte{1}}, {Dims: []int{0}}, {Dims: []int{-1}}, {Dims: make([]int, 9)}} {
		require.ErrorContains(t, WriteIDX(path, x), path)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "no files are left behind")
}

// FuzzIDX checks that bytes give either an error or a tensor that encodes to the
// same bytes.
func FuzzIDX(f *testing.F) {
	f.Add(rawIDX(8, []uint32{2, 2}, 1, 2, 3, 4), true)
	f.Add(rawIDX(8, []uint32{1 << 31, 1 << 31, 4}), false)
	f.Add(rawIDX(8, []uint32{0xffffffff}, 1), false)
	f.Add(rawIDX(9, []uint32{1}, 1), true)
	f.Add([]byte{}, false)
	f.Add(append(gzipped(f, rawIDX(8, []uint32{3}, 1, 2, 3)), 0, 0), true)
	f.Add(append(gzipped(f, rawIDX(8, []uint32{3})), gzipped(f, []byte{1, 2, 3, 4})...), true)
	f.Fuzz(func(t *testing.T, raw []byte, sized bool) {
		fuzzFile(t, raw)
		x, err := decodeIDX(bytes.NewReader(raw), func(dims []int, want int64) error {
			if !sized {
				return nil
			}
			return promised(dims, want, int64(len(raw)-idxHeaderLen(dims)))
		})
		if err != nil {
			return
		}
		var b bytes.Buffer
		require.NoError(t, x.Encode(&b))
		require.Equal(t, raw, b.Bytes())
	})
}

// fuzzFile checks that checkIDX and ReadIDX agree on a file, except for mistakes that
// only reading finds.
func fuzzFile(t *testing.T, raw []byte) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	dims, refused := checkIDX(path)
	x, err := ReadIDX(path)
	if err == nil {
		require.NoError(t, refused)
		require.Equal(t, x.Dims, dims)
	}
}
