package collective

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"
)

// HostID identifies the processes that can share memory: those of one boot of
// one kernel in one network namespace. Zero means unknown and matches nothing.
type HostID uint64

// Role says what a member does in a job.
type Role uint8

// The roles. Workers and servers are members of a View. A Watcher sees Views and
// is in none.
const (
	Worker  Role = iota // trains
	Server              // serves workers, such as with parameters
	Watcher             // observes, such as ringtrain members and status
)

// String returns the role in lower case, as flags and logs spell it.
func (r Role) String() string {
	switch r {
	case Worker:
		return "worker"
	case Server:
		return "server"
	case Watcher:
		return "watcher"
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// A Member is one process of a job during one life. A restarted process is
// another Member, because it has another Nonce.
type Member struct {
	Name      string           // unique in the job while it lives, e.g. "vm1-7f3a/2"
	Nonce     uint64           // drawn at every start, never 0
	Node      string           // the machine (more exactly: the launcher) it belongs to, e.g. "vm1-7f3a"
	Local     int              // index among the workers and servers of its Node
	LocalSize int              // how many workers and servers its Node has
	Host      HostID           // processes with the same Host can share memory
	Role      Role             // what the process does in the job
	Addrs     []netip.AddrPort // where its data plane listens, best first
}

// A View is an agreed list of members. It never changes. When the membership
// changes, the members agree on another View with a higher Epoch. A rank is an
// index into Members.
type View struct {
	Job     uint64 // drawn by the first proposer of the job, never 0
	Epoch   uint64 // 1 for the first View of a job
	Self    int    // the rank of this process
	Members []Member
}

// Size returns the number of ranks.
func (v View) Size() int { return len(v.Members) }

// Ranks returns the ranks of the members with a role, in ascending order.
// In a first View all workers rank before all servers.
func (v View) Ranks(role Role) []int {
	var ranks []int
	for r, m := range v.Members {
		if m.Role == role {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// Name returns the name of a rank, or "rank" and its number if there is no such
// rank.
func (v View) Name(rank int) string {
	if rank < 0 || rank >= len(v.Members) {
		return fmt.Sprintf("rank %d", rank)
	}
	return v.Members[rank].Name
}

// Digest returns a 64-bit hash of the job, the epoch and the members in order.
// Handshakes use it to compare Views.
func (v View) Digest() uint64 {
	h := fnv.New64a()
	var b [8]byte
	word := func(x uint64) {
		binary.LittleEndian.PutUint64(b[:], x)
		h.Write(b[:])
	}
	word(v.Job)
	word(v.Epoch)
	for _, m := range v.Members {
		word(uint64(len(m.Name)))
		h.Write([]byte(m.Name))
		word(m.Nonce)
	}
	return h.Sum64()
}

// String returns one line for logs: the job, the epoch and the members in rank
// order.
func (v View) String() string {
	names := make([]string, len(v.Members))
	for i, m := range v.Members {
		names[i] = m.Name
	}
	return fmt.Sprintf("job %016x epoch %d: %s", v.Job, v.Epoch, strings.Join(names, ", "))
}

// hosts returns the host of each rank, named by the first rank on that host.
// Where hosts are unknown, the workers of one launcher count as one host.
func (v View) hosts() []int {
	hosts := make([]int, len(v.Members))
	for r, m := range v.Members {
		hosts[r] = slices.IndexFunc(v.Members, func(o Member) bool {
			return m.Host == o.Host && (m.Host != 0 || m.Node == o.Node)
		})
	}
	return hosts
}
