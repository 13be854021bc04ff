package shm

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// peerMemory is how a rank reaches the vectors of the other ranks.
type peerMemory struct {
	arenas    *Arenas
	server    *fdServer // gives the others the descriptors of arenas
	reads     bool      // large vectors may go by read
	probe     *probe    // kept alive, because the others have its address
	mapped    *mapped
	locations []location // of this call's vectors, by index
	views     [][]byte   // the vectors themselves, if they are in place
	scratch   []byte     // for operands that were read
	reader    remoteReader
}

// mapped is the shared memory that this rank has mapped: that of the ranks of
// the host, and the arenas of other ranks.
type mapped struct {
	region  *region
	windows map[window][]byte
}

// A window is an arena of a peer.
type window struct {
	peer int
	id   uint64
}

func (m *mapped) close() {
	_ = m.region.close()
	for _, mem := range m.windows {
		_ = unix.Munmap(mem)
	}
}

// window returns an arena of a peer, and maps it on first use.
func (t *Transport) window(peer int, id uint64) ([]byte, error) {
	key := window{peer, id}
	if mem := t.mapped.windows[key]; mem != nil {
		return mem, nil
	}
	fd, size, err := fetchWhileWhole(context.Background(), t.under, t.mem.bytes(t.mem.serverAddress(peer), addressBytes), id)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	mem, err := attach(fd, size)
	if err != nil {
		return nil, err
	}
	t.mapped.windows[key] = mem
	return mem, nil
}

// unreachableTime is how long a peer's memory may be out of reach before the View
// breaks because of it.
const unreachableTime = time.Second

// unreachable breaks the View because a peer's memory cannot be reached. Usually
// the peer has just died, or has stopped because another rank died. Then the
// transport below soon reports which rank died, so unreachable waits for that
// first.
func (h *hostRanks) unreachable(peer int, err error) error {
	late := time.NewTimer(unreachableTime)
	defer late.Stop()
	select {
	case <-h.under.Failed():
		return h.under.Err()
	case <-late.C:
	}
	h.under.Abort(&collective.RankError{Rank: h.ranks[peer], Phase: "receive", Err: fmt.Errorf("shm: its memory cannot be reached: %w", err)})
	return h.failure()
}
