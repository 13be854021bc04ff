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
	leaveCores(every)
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, before, after)
}
