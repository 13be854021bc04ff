package store

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
)

// The format on disk must never change: a store written by an older ringtrain is read.
func TestEntryFormat(t *testing.T) {
	e := entry{version: 2, seen: []seen{{token{[16]byte{9}, 7}, 2}, {token{[16]byte{8}, 1}, 1}}, value: tensor(t, []float32{1, -2}, 2, 1)}
	want := "01" + "02" + "0200000000000000" + // format, sessions, version
		"09000000000000000000000000000000" + "0700000000000000" + "0200000000000000" + // session, call, version
		"08000000000000000000000000000000" + "0100000000000000" + "0100000000000000" +
		"02" + "02" + "02000000" + "01000000" + "0000803f" + "000000c0" // type, dimensions, shape, data
	b := e.encode()
	require.Equal(t, want, hex.EncodeToString(b[:len(b)-4]))
	got, err := decodeEntry(b)
	require.NoError(t, err)
	require.Equal(t, e, got)
}

// No changed bit and no missing byte goes unnoticed.
func TestDamagedEntry(t *testing.T) {
	b := entry{version: 7, seen: []seen{{token{[16]byte{9}, 1}, 7}}, value: Raw([]byte("value"))}.encode()
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			_, err := decodeEntry(b)
			require.Error(t, err, "byte %d, bit %d", i, bit)
			b[i] ^= 1 << bit
		}
		_, err := decodeEntry(b[:i])
		require.Error(t, err, "%d bytes", i)
	}
}

// An update that is repeated has no further effect, and returns what it returned, even if
// others have updated the key since.
func TestRepeatedUpdates(t *testing.T) {
	var e entry
	set := func(session byte, call, version uint64) outcome {
		u := update{key: "k", value: Raw(nil), version: version, token: token{[16]byte{session}, call}}
		var o outcome
		e, o = u.apply(e)
		return o
	}
	require.Equal(t, outcome{version: 1}, set(1, 5, 0))
	for n := range uint64(1000) { // of one other session
		require.Equal(t, outcome{version: 2 + n}, set(2, n, 1+n))
	}
	require.Equal(t, outcome{version: 1}, set(1, 5, 0))
	require.Equal(t, outcome{version: 1}, set(1, 5, Any))
	require.Equal(t, outcome{version: 1002}, set(1, 6, Any))
	require.ErrorContains(t, set(1, 5, Any).err, `the client has updated "k" again since`)
	for n := range remembered - 1 { // all others that it can remember
		require.NoError(t, set(byte(100+n), 1, Any).err)
	}
	require.Equal(t, outcome{version: 1002}, set(1, 6, 1001))
	require.Len(t, e.seen, remembered)
	require.NoError(t, set(99, 1, Any).err)
	require.Len(t, e.seen, remembered)
	var conflict *VersionError
	require.ErrorAs(t, set(1, 6, 1001).err, &conflict, "forgotten")
	_, err := decodeEntry(e.encode())
	require.NoError(t, err)

	u := update{key: "k", value: Raw(nil), version: Any} // never sent again, so not remembered
	after, o := u.apply(e)
	require.NoError(t, o.err)
	require.Equal(t, e.seen, after.seen)
}

func FuzzEntry(f *testing.F) {
	f.Add(entry{version: 2, seen: []seen{{token{[16]byte{1}, 1}, 2}}, value: Raw([]byte("x"))}.encode())
	f.Add(entry{version: 1, value: Value{Type: Float64, Shape: []int{1, 1}, Data: make([]byte, 8)}}.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, text := range [][]byte{b, sealed(b)} {
			if e, err := decodeEntry(text); err == nil {
				require.NoError(t, e.value.Check())
				require.Equal(t, text, e.encode(), "accepts only what encode returns")
			}
		}
	})
}

// sealed returns b with a right checksum.
func sealed(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b[:len(b):len(b)], crc32.Checksum(b, castagnoli))
}
