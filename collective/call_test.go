package collective_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var raw [collective.HeaderSize]byte
		copy(raw[:], rapid.SliceOfN(rapid.Byte(), len(raw), len(raw)).Draw(t, "raw"))
		var h collective.Header
		h.Get(raw[:])
		var again [collective.HeaderSize]byte
		h.Put(again[:])
		require.Equal(t, raw, again, "every bit of the wire form means something")
	})
}

func TestMatch(t *testing.T) {
	mine := collective.Header{Job: 1, Epoch: 2, Seq: 3, Call: collective.Call{Kind: collective.KindBroadcast, DType: collective.Float32, Root: 1, Count: 5}}
	same := mine
	same.Step = 99
	require.NoError(t, mine.Match(&same, 0, 1), "the step may differ")
	for want, change := range map[string]func(h *collective.Header){
		"rank 1 called Broadcast(float32[5], root 1) #4, rank 0 called Broadcast(float32[5], root 1) #3": func(h *collective.Header) { h.Seq++ },
		"rank 1 called Broadcast(float32[5], root 2) #3":                                                 func(h *collective.Header) { h.Call.Root = 2 },
		"epoch 1 group 0 to rank 0, which is in job 0000000000000001 epoch 2":                            func(h *collective.Header) { h.Epoch = 1 },
		"#3 by chain, rank 0 by an engine without plans: use the same Options.Order, engine and kind of": func(h *collective.Header) { h.Call.Method = uint8(schedule.Chain) },
		"expected part 0 (0 bytes)": func(h *collective.Header) { h.Part, h.Len = 1, 4 },
	} {
		theirs := mine
		change(&theirs)
		err := mine.Match(&theirs, 0, 1)
		require.ErrorIs(t, err, collective.ErrMismatch)
		require.ErrorContains(t, err, want)
	}
}

func TestAbortRoundTrip(t *testing.T) {
	for _, cause := range []error{
		collective.ErrLost, fmt.Errorf("read: %w", collective.ErrSilent), collective.ErrLate, context.Canceled,
		&collective.MismatchError{Self: 1, Peer: 0}, errors.New("something else"),
		errors.New(strings.Repeat("long ", 1000)),
		errors.New("long " + strings.Repeat("ö", 1000)), errors.New("longer" + strings.Repeat("ö", 1000)),
	} {
		b := collective.PutAbort(&collective.RankError{Rank: 2, Phase: "receive", Err: cause}, 1)
		require.LessOrEqual(t, len(b), collective.MaxAbort)
		got, err := collective.GetAbort(b, 3)
		require.NoError(t, err)
		require.Equal(t, 2, got.Rank)
		require.Equal(t, "receive", got.Phase)
		var reported *collective.ReportedError
		require.ErrorAs(t, got, &reported)
		require.Equal(t, 1, reported.By)
		require.ErrorContains(t, got, cause.Error()[:4])
		require.True(t, utf8.ValidString(got.Error()))
		for _, sentinel := range []error{collective.ErrLost, collective.ErrSilent, collective.ErrLate, collective.ErrMismatch, context.Canceled} {
			require.Equal(t, errors.Is(cause, sentinel), errors.Is(got, sentinel), "%v is %v", cause, sentinel)
		}

		again, err := collective.GetAbort(collective.PutAbort(got, 0), 3)
		require.NoError(t, err)
		require.Equal(t, got.Error(), again.Error(), "forwarding a report does not change who reported first")

		_, err = collective.GetAbort(b, 2)
		require.Error(t, err, "a culprit that is not in the View")
	}
}

func FuzzGetAbort(f *testing.F) {
	f.Add(collective.PutAbort(&collective.RankError{Rank: 1, Phase: "send", Err: collective.ErrLost}, 0), 2)
	f.Add([]byte{}, 1)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if size < 1 || size > 1<<20 {
			return
		}
		cause, err := collective.GetAbort(b, size)
		if err != nil {
			return
		}
		require.Less(t, cause.Rank, size)
		require.NotEmpty(t, cause.Error())
		require.LessOrEqual(t, len(collective.PutAbort(cause, 0)), collective.MaxAbort)
	})
}

func TestViewDigest(t *testing.T) {
	v := collective.View{Job: 1, Epoch: 1, Members: []collective.Member{{Name: "a", Nonce: 1}, {Name: "b", Nonce: 2}}}
	other := func(change func(v *collective.View)) uint64 {
		w := v
		w.Members = append([]collective.Member(nil), v.Members...)
		change(&w)
		return w.Digest()
	}
	require.Equal(t, v.Digest(), other(func(w *collective.View) { w.Self = 1 }), "all ranks have the same digest")
	require.NotEqual(t, v.Digest(), other(func(w *collective.View) { w.Epoch = 2 }))
	require.NotEqual(t, v.Digest(), other(func(w *collective.View) { w.Job = 2 }))
	require.NotEqual(t, v.Digest(), other(func(w *collective.View) { w.Members[0].Nonce = 9 }), "another life of a process")
	require.NotEqual(t, v.Digest(), other(func(w *collective.View) { w.Members[0], w.Members[1] = w.Members[1], w.Members[0] }))
	require.Equal(t, "rank 5", v.Name(5))
	require.Equal(t, "job 0000000000000001 epoch 1: a, b", v.String())
}
