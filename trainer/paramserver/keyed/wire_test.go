package keyed

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/store"
)

func FuzzRequest(f *testing.F) {
	one := store.Value{Type: store.Float32, Shape: []int{1}, Data: make([]byte, 4)}
	for _, q := range []request{
		{op: opPull, key: "k", version: 3}, {op: opSet, key: "k", version: store.Any, value: one}, {op: opPush, key: "k", value: one},
		{op: opKeys}, {op: opFind, key: "k"}, {op: opAssign, key: "k", version: 4},
	} {
		f.Add(q.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := decodeRequest(b)
		if err != nil {
			return
		}
		require.Equal(t, b, q.append(nil), "accepts only what append writes")
		if q.op.hasValue() {
			require.NoError(t, q.value.Check())
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for _, a := range []answer{
		{status: statusDone, version: 3}, {status: statusValue, version: 1, value: store.Raw([]byte("x"))},
		{status: statusNotFound}, {status: statusVersion, version: 5}, {status: statusRefused, text: "no"},
	} {
		f.Add(a.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAnswer(b)
		if err != nil {
			return
		}
		require.Equal(t, b, a.append(nil))
		require.Equal(t, a.status == statusDone || a.status == statusValue, a.err(request{key: "k"}) == nil)
	})
}

func FuzzListing(f *testing.F) {
	f.Add("7 a 1\n0 b\n")
	f.Fuzz(func(t *testing.T, text string) {
		d := newDirectory(2)
		if d.list(text, 1) == nil {
			require.Zero(t, d.bytes[0])
		}
	})
}

// Errors keep their kind from the server to the client.
func TestErrorsTravel(t *testing.T) {
	q := request{key: "k", version: 3}
	travel := func(err error) error {
		a, refused := refusal(err)
		require.True(t, refused)
		a, bad := decodeAnswer(a.append(nil))
		require.NoError(t, bad)
		return a.err(q)
	}
	require.EqualError(t, travel(fmt.Errorf("%w: %q", store.ErrNotFound, "k")), `no such key: "k"`)
	require.Equal(t, &store.VersionError{Key: "k", Want: 3, Have: 5}, travel(&store.VersionError{Key: "k", Want: 3, Have: 5}))
	require.EqualError(t, travel(fmt.Errorf("%w: x", store.ErrRefused)), "refused: x")
	_, refused := refusal(errors.New("the device is gone"))
	require.False(t, refused)
}
