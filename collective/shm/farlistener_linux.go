package shm

import (
	"context"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective"
)

// A farListener finds messages from other hosts. While the goroutine in next waits for
// those of this host, another goroutine waits for these.
type farListener struct {
	next    func(ctx context.Context, from []int, h *collective.Header) (rank int, err error) // of the transport below; nil if it cannot
	ask     chan []int                                                                        // the ranks to wait for
	asked   bool                                                                              // a wait has begun whose result was not used; belongs to the goroutine in waiter.next
	arrived atomic.Pointer[arrival]
}

// An arrival is a result of farListener.next.
type arrival struct {
	rank int
	h    collective.Header
	err  error
}

// run waits for messages when asked to, until failed is closed, and rings when one has
// arrived.
func (f *farListener) run(failed <-chan struct{}, ring func()) {
	for {
		select {
		case from := <-f.ask:
			f.arrived.Store(f.wait(context.Background(), from))
			ring()
		case <-failed:
			return
		}
	}
}

func (f *farListener) wait(ctx context.Context, from []int) *arrival {
	a := new(arrival)
	a.rank, a.err = f.next(ctx, from, &a.h)
	return a
}

// look finds a message that has arrived, without waiting. So ranks of other hosts get
// their turn even if those of this host always have a message.
func (f *farListener) look(from []int) {
	if len(from) == 0 {
		return
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if a := f.wait(ended, from); a.rank >= 0 || a.err != nil {
		f.asked = true
		f.arrived.Store(a)
	}
}

// listen begins to wait for a message.
func (f *farListener) listen(from []int) {
	if len(from) > 0 {
		f.asked = true
		f.ask <- from
	}
}

// forget drops an arrival that was used. It is not lost: the transport below finds a
// message again until it is received.
func (f *farListener) forget() {
	f.asked = false
	f.arrived.Store(nil)
}
