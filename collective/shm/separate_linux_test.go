package shm

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestLeaveCores(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	if !tellsCore() || before.Count() < 2 {
		t.Skip("needs two cores, and a processor that names them")
	}
	moved := false
	for range 100 { // the kernel may move the thread back at any time
		here := core()
		leaveCores([]uint64{here})
		moved = moved || core() != here
	}
	require.True(t, moved)
	var every []uint64
	for c := range 1024 {
		every = append(every, uint64(1+c))
	}
	require.False(t, leaveCores(every))
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, before, after)
}

func TestOverfull(t *testing.T) {
	for _, c := range []struct {
		name  string
		on    []uint64
		cores int
		leave [][]uint64 // of each rank
	}{
		{"even", []uint64{1, 2, 2, 1}, 2, [][]uint64{nil, nil, nil, nil}},
		{"three on one", []uint64{1, 2, 1, 1}, 2, [][]uint64{nil, nil, nil, {1}}},
		{"all on one", []uint64{2, 2, 2}, 2, [][]uint64{nil, nil, {2}}},
		{"one more is no imbalance", []uint64{1, 1, 2, 2, 1}, 2, [][]uint64{nil, nil, nil, nil, nil}},
		{"a full core is no place to go", []uint64{1, 1, 1, 2, 2, 3}, 3, [][]uint64{nil, nil, {1, 2}, nil, nil, nil}},
		{"two overfull cores", []uint64{1, 1, 1, 2, 2, 2}, 4, [][]uint64{nil, nil, {1, 2}, nil, nil, {1, 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for rank := range c.on {
				require.Equal(t, c.leave[rank], overfull(c.on, rank, c.cores), "rank %d", rank)
			}
		})
	}
}
