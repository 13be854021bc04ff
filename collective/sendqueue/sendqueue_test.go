package sendqueue_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/collective/sendqueue"
)

// message is the n-th to its destination, counted from 1. left bytes of it are unsent.
type message struct{ n, left int }

// network takes at most room bytes for each destination.
type network struct {
	room []int
	sent [][]int // the numbers of whole messages, by destination
}

func (w *network) write(to int, m *message) (progress, done bool, err error) {
	n := min(w.room[to], m.left)
	w.room[to] -= n
	if m.left -= n; m.left == 0 {
		w.sent[to] = append(w.sent[to], m.n)
	}
	return n > 0, m.left == 0, nil
}

// Every message arrives once, in the order of its destination, whatever the network
// takes and when. The queues agree with a model at every step.
func TestEveryMessageLeavesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 4).Draw(t, "destinations")
		var q sendqueue.Queues[message]
		q.Init(size)
		w := &network{room: make([]int, size), sent: make([][]int, size)}
		added, free := make([]int, size), 0
		check := func() {
			longest, busy := 0, []int{}
			for to := range size {
				n := added[to] - len(w.sent[to])
				longest = max(longest, n)
				if n > 0 {
					busy = append(busy, to)
				}
				for i, got := range w.sent[to] {
					require.Equal(t, i+1, got, "message %d to %d", i+1, to)
				}
			}
			to, messages := q.Longest()
			require.Equal(t, longest, messages)
			require.Equal(t, longest, added[to]-len(w.sent[to]))
			require.ElementsMatch(t, busy, q.Busy())
			require.Equal(t, len(busy) > 0, q.Unsent())
		}
		send := func() {
			before, total := slices.Clone(w.room), 0
			for to := range size {
				total -= len(w.sent[to])
			}
			progress, _, err := q.Send(w.write)
			require.NoError(t, err)
			require.Equal(t, !slices.Equal(before, w.room), progress)
			for to := range size {
				total += len(w.sent[to])
				require.True(t, w.room[to] == 0 || added[to] == len(w.sent[to]), "there was room for more")
			}
			free += total
			check()
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				to := rapid.IntRange(0, size-1).Draw(t, "to")
				m := q.Message()
				require.Equal(t, free > 0, *m != message{}, "a sent message is used again, before new memory")
				free = max(free-1, 0)
				added[to]++
				*m = message{added[to], rapid.IntRange(1, 5).Draw(t, "bytes")}
				q.Add(to, m)
				send()
			},
			"room": func(t *rapid.T) {
				w.room[rapid.IntRange(0, size-1).Draw(t, "to")] += rapid.IntRange(0, 12).Draw(t, "bytes")
				send()
			},
		})
		for to := range size {
			w.room[to] = 1 << 30
		}
		send()
		require.False(t, q.Unsent())
	})
}

// The first destination that fails is reported, its message stays, and neither earlier
// nor later destinations lose any.
func TestFailure(t *testing.T) {
	var q sendqueue.Queues[message]
	q.Init(3)
	for to := range 3 {
		for n := range 2 {
			m := q.Message()
			*m = message{n, 1}
			q.Add(to, m)
		}
	}
	broken := errors.New("reset by peer")
	w := &network{room: []int{9, 9, 9}, sent: make([][]int, 3)}
	progress, to, err := q.Send(func(to int, m *message) (progress, done bool, err error) {
		if to == 1 && m.n == 1 {
			return false, false, broken
		}
		return w.write(to, m)
	})
	require.ErrorIs(t, err, broken)
	require.Equal(t, 1, to)
	require.True(t, progress)
	require.Equal(t, [][]int{{0, 1}, {0}, nil}, w.sent)
	require.Equal(t, []int{1, 2}, q.Busy())
	require.True(t, q.Unsent())
	_, _, err = q.Send(w.write)
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 1}, {0, 1}, {0, 1}}, w.sent)
	require.False(t, q.Unsent())
}

// The longest busy destination comes first, so that a transport waits for it first.
func TestBusyOrder(t *testing.T) {
	var q sendqueue.Queues[message]
	q.Init(3)
	add := func(to int) {
		m := q.Message()
		*m = message{0, 1}
		q.Add(to, m)
	}
	add(2)
	add(0)
	add(2)
	require.Equal(t, []int{2, 0}, q.Busy())
	to, messages := q.Longest()
	require.Equal(t, 2, to)
	require.Equal(t, 2, messages)
	add(1)
	w := &network{room: []int{1, 0, 2}, sent: make([][]int, 3)}
	_, _, err := q.Send(w.write)
	require.NoError(t, err)
	add(2)
	require.Equal(t, []int{1, 2}, q.Busy())
}

func TestAllocations(t *testing.T) {
	var q sendqueue.Queues[message]
	q.Init(2)
	w := &network{room: []int{0, 0}, sent: [][]int{make([]int, 0, 1<<12), make([]int, 0, 1<<12)}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := range 20 {
			m := q.Message()
			*m = message{i, 1}
			q.Add(i%2, m)
			if i%5 == 4 {
				w.room[i%2] += 4
				_, _, _ = q.Send(w.write)
			}
		}
		w.room[0], w.room[1] = 20, 20
		_, _, _ = q.Send(w.write)
	}))
}
