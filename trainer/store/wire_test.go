package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzRequest(f *testing.F) {
	for _, r := range []request{
		{op: opGet, key: "k"},
		{op: opSet, key: "k", version: 3, token: token{[16]byte{1}, 2}, value: Value{Type: Float32, Shape: []int{1}, Data: make([]byte, 4)}},
		{op: opKeys, key: "k", after: "k5"},
	} {
		f.Add(r.encode()[lengthSize:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRequest(b)
		if err != nil {
			return
		}
		require.Equal(t, b, r.encode()[lengthSize:], "accepts only what encode returns")
		if r.op == opSet {
			require.NoError(t, r.value.Check())
		}
	})
}

func FuzzReply(f *testing.F) {
	f.Add(reply{status: statusDone, version: 3, rest: AppendValue(nil, Raw([]byte("x")))}.encode()[lengthSize:])
	f.Add(reply{status: statusDone, rest: appendText(appendText(nil, "a"), "b")}.encode()[lengthSize:])
	f.Add(reply{status: statusRefused, rest: []byte("no\n")}.encode()[lengthSize:])
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeReply(b)
		if err != nil {
			return
		}
		require.Equal(t, b, r.encode()[lengthSize:])
		if err := r.err(request{key: "k"}); err != nil {
			require.True(t, printable(err.Error()), "%q", err)
		}
		if v, err := DecodeValue(r.rest); err == nil {
			require.NoError(t, v.Check())
			require.Equal(t, r.rest, AppendValue(nil, v))
		}
		if keys, err := decodeKeys(r.rest); err == nil {
			var again []byte
			for _, k := range keys {
				again = appendText(again, k)
			}
			require.True(t, bytes.Equal(r.rest, again))
		}
	})
}

// Errors keep their kind from the server to the client.
func TestErrorsTravel(t *testing.T) {
	to := request{key: "k", version: 3}
	travel := func(err error) error {
		r, bad := decodeReply(replyTo(err).encode()[lengthSize:])
		require.NoError(t, bad)
		return r.err(to)
	}
	require.ErrorIs(t, travel(ErrNotFound), ErrNotFound)
	require.Equal(t, &VersionError{Key: "k", Want: 3, Have: 5}, travel(&VersionError{Key: "k", Want: 3, Have: 5}))
	require.EqualError(t, travel(fmt.Errorf("%w: x", ErrRefused)), "refused: x")
	require.EqualError(t, travel(errors.New("disk\nfull")), "disk full")
	require.Len(t, travel(errors.New(strings.Repeat("x", 2*maxText))).Error(), maxText)
}

// A message longer than allowed is refused before memory is allocated, and one that ends
// early is no message.
func TestReadMessage(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeMessage(&b, append(newMessage(3), "abc"...)))
	text := b.Bytes()
	got, err := readMessage(&b, 3)
	require.NoError(t, err)
	require.Equal(t, "abc", string(got))
	_, err = readMessage(bytes.NewReader(text), 2)
	require.EqualError(t, err, "refused: a message must have at most 2 bytes, not 3")
	for n := range text {
		_, err = readMessage(bytes.NewReader(text[:n]), 3)
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
	}
	announced := bytes.NewReader([]byte{0, 0, 0, 4, 'a'}) // 64 MiB, of which one byte comes
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = readMessage(announced, maxMessage)
	runtime.ReadMemStats(&after)
	require.Error(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}
