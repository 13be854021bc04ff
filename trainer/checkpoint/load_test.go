package checkpoint

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// file returns a file with the given header and data.
func file(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestLoadErrors(t *testing.T) {
	const x = `"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}`
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":               {nil, "it has 0 bytes, but the header's length alone takes 8"},
		"half a length":       {[]byte{1, 2, 3}, "it has 3 bytes"},
		"header over the cap": {binary.LittleEndian.AppendUint64(nil, 100_000_001), "it announces a header of 100000001 bytes, but the format allows at most 100000000"},
		"truncated header":    {file("{}")[:9], "truncated: the file announces a header of 2 bytes, but 1 bytes follow"},
		"empty header":        {file(""), "does not start with {"},
		"not an object":       {file("[]"), "does not start with {"},
		"not UTF-8":           {file("{\"\xff\":1}"), "not UTF-8"},
		"bad JSON":            {file(`{"x":`), "bad JSON"},
		"text after":          {file(`{} x`), "there is text after the object"},
		"name twice":          {file(`{`+x+`,`+x+`}`, 1, 2), `"x" occurs twice`},
		"entry not an object": {file(`{"x":3}`), `tensor "x": expected a JSON object`},
		"no dtype":            {file(`{"x":{"shape":[2],"data_offsets":[0,2]}}`, 1, 2), "the entry needs dtype, shape and two data_offsets"},
		"null shape":          {file(`{"x":{"dtype":"U8","shape":null,"data_offsets":[0,2]}}`, 1, 2), "shape: expected an array of whole numbers"},
		"negative shape":      {file(`{"x":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}}`, 1, 2), "got [-2]"},
		"fraction":            {file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2.5]}}`, 1, 2), "data_offsets: expected an array of whole numbers"},
		"three offsets":       {file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,1,2]}}`, 1, 2), "two data_offsets"},
		"unknown dtype":       {file(`{"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`, 1, 2), `"BF16" is not supported`},
		"dtype twice":         {file(`{"x":{"dtype":"U8","dtype":"F32","shape":[2],"data_offsets":[0,2]}}`, 1, 2), `"dtype" occurs twice`},
		"no elements":         {file(`{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`), "without elements"},
		"shape overflows":     {file(`{"x":{"dtype":"F64","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]}}`), "does not fit into memory"},
		"product overflows":   {file(`{"x":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}}`), "does not fit into memory"},
		"size and shape":      {file(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,2]}}`, 1, 2), "shape [2] of F32 needs 8 bytes, but its data_offsets are 0 and 2"},
		"end before begin":    {file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}}`, 1, 2), "its data_offsets are 2 and 0"},
		"truncated data":      {file(`{`+x+`}`, 1), `truncated: tensor "x" ends at byte 2 of the data, but the file has 1 bytes of data`},
		"more data":           {file(`{`+x+`}`, 1, 2, 3), "1 bytes follow the last tensor"},
		"hole before":         {file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 1, 2, 3), `a hole of 1 bytes before tensor "x"`},
		"hole between":        {file(`{`+x+`,"y":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}`, 1, 2, 3, 4), `a hole of 1 bytes before tensor "y"`},
		"overlap":             {file(`{`+x+`,"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 1, 2, 3), `tensor "y" overlaps another`},
		"the same bytes":      {file(`{`+x+`,"y":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 1, 2), `tensor "y" overlaps another`},
		"note not a text":     {file(`{"__metadata__":{"k":1}}`), `metadata: "k": expected a string`},
		"null note":           {file(`{"__metadata__":{"k":null}}`), "expected a string"},
		"note twice":          {file(`{"__metadata__":{"k":"a","k":"b"}}`), `"k" occurs twice`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad")
			require.NoError(t, os.WriteFile(path, c.raw, 0o600))
			_, err := Load(path)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
		})
	}
	_, err := Load(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Load(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
}

func TestLoadAccepts(t *testing.T) {
	for name, raw := range map[string][]byte{
		"padding":             file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}     `, 1, 2),
		"header out of order": file(`{"y":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 1, 2, 3),
		"unknown fields":      file(`{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"crc":3}}`, 1, 2),
	} {
		t.Run(name, func(t *testing.T) {
			f, err := decode(bytes.NewReader(raw), int64(len(raw)))
			require.NoError(t, err)
			require.Equal(t, "x", f.Tensors[0].Name)
			require.Equal(t, []uint8{1, 2}, f.Tensors[0].Tensor.Data())
		})
	}
}

// FuzzLoad checks that bytes give either an error or a file that survives writing
// and reading.
func FuzzLoad(f *testing.F) {
	golden, err := os.ReadFile("testdata/python.safetensors")
	require.NoError(f, err)
	f.Add(golden)
	f.Add(file(`{}`))
	f.Add(file(`{"__metadata__":{}}`))
	f.Add(file(`{"x":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, 1, 2, 3, 4))
	f.Add(file(`{"x":{"dtype":"U8","shape":[1,1],"data_offsets":[0,1]},"\u00e9":{"dtype":"I32","shape":[1],"data_offsets":[1,5]}}`, 1, 2, 3, 4, 5))
	f.Add(file(strings.Repeat("{", 50)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, err := decode(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		_, _ = in.Training() // may fail, but must not panic
		p, err := in.plan()
		if err != nil { // names that Save rejects
			require.ErrorContains(t, err, "cannot be named")
			return
		}
		var out bytes.Buffer
		require.NoError(t, p.write(&out))
		again, err := decode(bytes.NewReader(out.Bytes()), int64(out.Len()))
		require.NoError(t, err)
		require.Equal(t, in.Metadata, again.Metadata)
		before, err := Hash(in.Tensors)
		require.NoError(t, err)
		after, err := Hash(again.Tensors)
		require.NoError(t, err)
		require.Equal(t, before, after)
		for i, n := range in.Tensors {
			require.Equal(t, n.Name, again.Tensors[i].Name)
			require.Equal(t, n.Tensor.Shape(), again.Tensors[i].Tensor.Shape())
		}
	})
}
