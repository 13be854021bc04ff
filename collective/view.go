package collective

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"
)

// HostID names a place whose processes can share memory: one boot of one
// kernel and one network namespace. Zero means unknown, which equals nothing.
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

// A Member is one process of a job, in one of its lives: a process that is
// started again is another Member, because its Nonce differs.
type Member struct {
	Name      string           // unique in the job while it lives, e.g. "vm1-7f3a/2"
	Nonce     uint64           // drawn at every start, never 0
	Node      string           // the machine (more exactly: the launcher) it belongs to, e.g. "vm1-7f3a"
	Local     int              // index among the workers and servers of its Node
	LocalSize int              // how many workers and servers its Node has
	Host      HostID           // where memory can be shared
	Role      Role             // what it does
	Addrs     []netip.AddrPort // where its data plane listens, best first
}

// A View is one agreed list of members. It never changes: when the membership
// changes, the members agree on another View with a higher Epoch. A rank is an
// index into Members.
type View struct {
	Job     uint64 // drawn by the first proposer of the job, never 0
	Epoch   uint64 // 1 for the first View of a job
	Self    int    // the rank of this process
	Members []Member
}

// Size is the number of ranks.
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

// Name is the name of a rank, or a number where the rank does not exist.
func (v View) Name(rank int) string {
	if rank < 0 || rank >= len(v.Members) {
		return fmt.Sprintf("rank %d", rank)
	}
	return v.Members[rank].Name
}

// Digest is the same for two Views exactly if they have the same job, epoch
// and members in the same order (up to a 64-bit hash). Handshakes carry it.
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

// String is one line for logs: the epoch and the members in rank order.
func (v View) String() string {
	names := make([]string, len(v.Members))
	for i, m := range v.Members {
		names[i] = m.Name
	}
	return fmt.Sprintf("job %016x epoch %d: %s", v.Job, v.Epoch, strings.Join(names, ", "))
}

// hosts says for each rank which host it is on, by the first rank that is there,
// too. Where hosts are not known, one launcher's workers are on one.
func (v View) hosts() []int {
	hosts := make([]int, len(v.Members))
	for r, m := range v.Members {
		hosts[r] = slices.IndexFunc(v.Members, func(o Member) bool {
			return m.Host == o.Host && (m.Host != 0 || m.Node == o.Node)
		})
	}
	return hosts
}
