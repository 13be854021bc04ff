package shm

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A rank that has parted returns if it queues for its new core, and then waits longer
// each time before it parts again.
func TestParting(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(wall, queued time.Duration) queueTime {
		return queueTime{thread: 1, wall: start.Add(wall), queued: queued}
	}
	var p parting
	require.True(t, p.may(start))
	p.begin(at(0, 0), 7)
	require.Equal(t, uint64(7), p.left)
	require.False(t, p.over(at(partTrial-1, partTrial-1)), "too early to say")
	require.True(t, p.over(at(partTrial, partTrial/2)))
	require.False(t, p.may(start.Add(partTrial+firstPause-1)))

	now := partTrial + firstPause
	require.True(t, p.may(start.Add(now)))
	p.begin(at(now, 0), 7)
	require.False(t, p.over(queueTime{thread: 2, wall: start.Add(now + time.Second), queued: time.Second}), "another thread")
	now += time.Second
	require.True(t, p.over(queueTime{thread: 2, wall: start.Add(now + partTrial), queued: time.Second + partTrial}))
	now += partTrial
	require.False(t, p.may(start.Add(now+2*firstPause-1)), "the pause has doubled")
	for range 10 {
		now += time.Minute
		p.begin(at(now, 0), 7)
		require.True(t, p.over(at(now+partTrial, partTrial)))
	}
	now += partTrial
	require.False(t, p.may(start.Add(now+mostPause-1)))
	require.True(t, p.may(start.Add(now+mostPause)))

	now += mostPause
	p.begin(at(now, 0), 7)
	require.False(t, p.over(at(now+partTrial, partTrial/queuedPart)), "it pays")
	now += partTrial
	require.True(t, p.may(start.Add(now)))
	p.begin(at(now, 0), 7)
	require.True(t, p.over(at(now+partTrial, partTrial)))
	require.True(t, p.may(start.Add(now+partTrial+firstPause)), "the pause is the first again")
}

// If the kernel brings both together again, a rank parts again, but not at once if it has
// just parted.
func TestPartingAgain(t *testing.T) {
	start := time.Unix(1000, 0)
	var p parting
	p.begin(queueTime{wall: start}, 1)
	require.True(t, p.may(start.Add(partTrial)))
	p.begin(queueTime{wall: start.Add(partTrial)}, 1)
	require.False(t, p.may(start.Add(2*partTrial-1)))
	require.False(t, p.may(start.Add(2*partTrial)))
	require.True(t, p.may(start.Add(2*partTrial+firstPause)))
}

func TestQueueNow(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, ok := queueNow()
	if !ok {
		t.Skip("the kernel does not tell how long threads queue")
	}
	require.Equal(t, unix.Gettid(), before.thread)
	after, ok := queueNow()
	require.True(t, ok)
	require.GreaterOrEqual(t, after.queued, before.queued)
	require.False(t, after.wall.Before(before.wall))
}

func TestMoveTo(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	if !tellsCore() || before.Count() < 2 {
		t.Skip("needs two cores, and a processor that names them")
	}
	reached := map[uint64]bool{}
	for range 100 { // the kernel may move the thread at any time
		for c := range uint64(len(before) * 64) {
			if before.IsSet(int(c)) {
				moveTo(1 + c)
				if core() == 1+c {
					reached[c] = true
				}
			}
		}
	}
	require.Len(t, reached, before.Count())
	moveTo(1 << 20) // no such core
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, before, after)
}
