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

// rawIDX is the bytes of an IDX file with the given header fields.
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

// Compression is told by content: the names say the opposite here.
func TestIDXIsReadByContent(t *testing.T) {
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
		"nothing":            {nil, "truncated: it ends after 0 bytes, an IDX header needs 8"},
		"not IDX":            {[]byte("PNG and so on"), "it begins with 50 4e 47 20, IDX begins with 00 00"},
		"floats":             {rawIDX(0x0d, []uint32{1}, 0, 0, 0, 0), "IDX element type 0x0d: only unsigned bytes (0x08) are read"},
		"no dimensions":      {rawIDX(8, nil), "IDX with 0 dimensions"},
		"many dimensions":    {rawIDX(8, make([]uint32, 9)), "IDX with 9 dimensions"},
		"zero dimension":     {rawIDX(8, []uint32{3, 0}), "dimensions [3 0]: each must be 1 or more"},
		"half a header":      {raw[:9], "truncated: 2 dimensions need 12 bytes of header, it ends after 9"},
		"data cut off":       {raw[:15], "its header promises 4 bytes of data (dimensions [2 2]), it holds 3"},
		"data too long":      {append(bytes.Clone(raw), 5), "its header promises 4 bytes of data (dimensions [2 2]), it holds 5"},
		"huge dimensions":    {rawIDX(8, []uint32{1 << 30, 1 << 30, 1 << 30}), "does not fit memory"},
		"large, no data":     {rawIDX(8, []uint32{1 << 30}), "its header promises 1073741824 bytes of data"},
		"zipped, cut off":    {gzipped(t, raw[:15]), "4 bytes of data expected, 3 found (dimensions [2 2])"},
		"zipped, too long":   {gzipped(t, append(bytes.Clone(raw), 5)), "more"},
		"zipped, large":      {gzipped(t, rawIDX(8, []uint32{1 << 30}, 1)), "truncated: its header promises 1073741824 bytes of data (dimensions [1073741824]), which 33 bytes of gzip cannot hold"},
		"zip file cut off":   {zipped[:len(zipped)-6], "truncated"},
		"zip header cut off": {zipped[:5], "truncated: in the gzip header"},
		"member cut off":     {append(gzipped(t, raw[:5]), gzipped(t, raw[5:])[:12]...), "truncated"},
		"member's header":    {append(gzipped(t, raw[:5]), 0x1f, 0x8b, 8), "truncated: in the header of a later gzip member"},
		"garbage":            {append(bytes.Clone(zipped), "garbage"...), "trailing garbage: what follows the gzip data is neither more of them nor zeros"},
		"garbage, 1 byte":    {append(bytes.Clone(zipped), 0x1f), "trailing garbage"},
		"zeros, garbage":     {append(append(bytes.Clone(zipped), make([]byte, 5000)...), 7), "trailing garbage"},
		"short and garbage":  {append(gzipped(t, raw[:15]), 7), "trailing garbage: what follows the gzip data is neither more of them nor zeros, and it holds 3 bytes of data where 4 are expected"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file-idx")
			require.NoError(t, os.WriteFile(path, c.content, 0o600))
			_, err := ReadIDX(path)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
			_, err = checkIDX(path)
			require.Error(t, err, "the check sees it too")
			require.ErrorContains(t, err, path)
		})
	}
	// The check looks at the end alone, which is that of a whole file here.
	path := filepath.Join(t.TempDir(), "file-idx")
	require.NoError(t, os.WriteFile(path, append(append(bytes.Clone(zipped), 0), zipped...), 0o600))
	_, err := ReadIDX(path)
	require.ErrorContains(t, err, "trailing garbage")
	_, err = ReadIDX(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = ReadIDX(t.TempDir())
	require.ErrorContains(t, err, "this is a directory")
}

// A few KB of gzip must not take the memory that their header asks for, and a file
// with holes, which takes no room on the disk, none at all.
func TestMemoryComesAsBytesArrive(t *testing.T) {
	dir := t.TempDir()
	bomb := filepath.Join(dir, "bomb")
	zeros := make([]byte, 3<<20)
	require.NoError(t, os.WriteFile(bomb, append(gzipped(t, rawIDX(8, []uint32{3_200_000}), zeros), make([]byte, 8)...), 0o600))
	require.Less(t, allocated(func() {
		_, err := ReadIDX(bomb)
		require.ErrorContains(t, err, "truncated: 3200000 bytes of data expected, 3145728 found")
	}), uint64(9<<20))

	sparse := filepath.Join(dir, "sparse")
	require.NoError(t, os.WriteFile(sparse, rawIDX(8, []uint32{1 << 31, 39}), 0o600))
	if err := os.Truncate(sparse, 12+39<<31); err != nil { // 80 GB
		t.Skipf("no file with holes: %v", err)
	}
	require.Less(t, allocated(func() {
		dims, err := checkIDX(sparse)
		require.NoError(t, err)
		require.Equal(t, []int{1 << 31, 39}, dims)
	}), uint64(1<<20))
}

// allocated is the bytes that a function takes from the heap in all.
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
	require.Empty(t, entries, "nothing is left behind")
}

// FuzzIDX: bytes are an error, or a tensor that encodes to the same bytes.
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
		size := int64(-1)
		if sized {
			size = int64(len(raw))
		}
		x, err := DecodeIDX(bytes.NewReader(raw), size)
		if err != nil {
			return
		}
		var b bytes.Buffer
		require.NoError(t, x.Encode(&b))
		require.Equal(t, raw, b.Bytes())
	})
}

// fuzzFile makes sure that a check of a file and its reading agree, but for what
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
