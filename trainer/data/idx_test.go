package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
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
		"zipped, large":      {gzipped(t, rawIDX(8, []uint32{1 << 30}, 1)), "1073741824 bytes of data expected, 1 found"},
		"zip file cut off":   {zipped[:len(zipped)-6], "truncated"},
		"zip header cut off": {zipped[:5], "truncated: in the gzip header"},
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
	_, err := ReadIDX(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = ReadIDX(t.TempDir())
	require.ErrorContains(t, err, "this is a directory")
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
	f.Fuzz(func(t *testing.T, raw []byte, sized bool) {
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
