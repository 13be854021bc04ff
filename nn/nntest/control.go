package nntest

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"
)

var errTest = errors.New("from fn")

// testRecord repeats a recording after changing its input.
func testRecord(h *harness) {
	x, y := h.upload(1, 2), h.b.Alloc(2)
	replay, err := h.b.Record("double", func() error {
		h.b.Zero(y)
		h.b.Axpy(y, 2, x)
		return nil
	})
	require.NoError(h, err)
	require.Equal(h, []float32{2, 4}, h.read(y), "Record runs fn")
	for _, v := range []float32{10, 20} {
		h.b.Copy(x, []float32{v, -v})
		require.NoError(h, replay())
		require.Equal(h, []float32{2 * v, -2 * v}, h.read(y))
	}
	_, err = h.b.Record("fails", func() error { return errTest })
	require.ErrorIs(h, err, errTest)
}

func testDo(h *harness) {
	require.NoError(h, h.b.Sync(h.Context()))
	require.ErrorIs(h, h.b.Do(h.Context(), func() error { return errTest }), errTest)
	ctx, cancel := context.WithCancel(h.Context())
	cancel()
	ran := false
	require.ErrorIs(h, h.b.Do(ctx, func() error { ran = true; return nil }), context.Canceled)
	require.False(h, ran)
	require.ErrorIs(h, h.b.Sync(ctx), context.Canceled)
}

// testFail: Sync returns the first failure, once.
func testFail(h *harness) {
	h.b.Fail(errTest)
	h.b.Fail(errors.New("later"))
	require.ErrorIs(h, h.b.Sync(h.Context()), errTest)
	require.NoError(h, h.b.Sync(h.Context()))
}

func testClose(h *harness) {
	h.b.Temp(10)
	require.NoError(h, h.b.Close())
	require.Error(h, h.b.Sync(h.Context()))
	require.Error(h, h.b.Do(h.Context(), func() error { return nil }))
	_, err := h.b.Record("late", func() error { return nil })
	require.Error(h, err)
}
