package collective

import "context"

// Abilities are what a Transport can do besides sending messages. A Transport
// declares them with the method of Able. A nil field means that it cannot, unless the
// field says otherwise. They never change, and only the engine calls them. Either
// all ranks of a View have Reduce or none has; the others may differ.
type Abilities struct {
	// Post sends in the goroutine of its caller.
	Post Poster
	// Reduce carries out whole operations in memory that all ranks share.
	Reduce Reducer
	// Lend is Reduce.Exchange without its limit: the ranks read what the others give, up to
	// most bytes, from where it lies. o.Len is 0. It returns false, on all ranks, if messages
	// must carry out the call. All ranks of a View have Lend, or none has.
	Lend func(o *Operation, most int) (done bool, err error)
	// Show announces a Barrier, an AllReduce in place, or an Exchange, before the caller
	// makes it with Reduce, so that other ranks can start. The caller makes that call next, with
	// the same o, even if the Transport breaks first: after Show, other ranks may write
	// into the memory of o until the call has returned.
	Show func(o *Operation)
	// NoteWaits is called before the first call and says where to note waits. The
	// Transport notes those that happen in the goroutine of the call: how long a
	// Poster waits until a peer accepts what was posted and, if NoteWaits returns
	// true, how long Recv waits. It need not note the first polls, which cost less
	// than reading the clock. If NoteWaits returns false, the engine times Recv.
	NoteWaits func(w *Waits) (recv bool)
	// Next waits for a message from any of the ranks from, and copies its header to h. It
	// leaves the message to Recv. If several have arrived, it returns the first in from
	// that it knows of. If ctx ends first, the rank is -1, and nothing is lost. On entry,
	// h is what a MismatchError prints as this rank's call. Next may be called while
	// another goroutine is in Send, but not during Recv. The engine drops a rank from the
	// list only right after that rank's last message.
	Next func(ctx context.Context, from []int, h *Header) (rank int, err error)
	// Behind returns the rank that has made the fewest calls, if fewer than seq. It may
	// know of none while call seq is so new that the ranks in it have not told the others.
	Behind func(seq uint64) (rank int, ok bool)
	// Streams returns the number of connections that carry a message of the
	// given size, each one a stripe of it. nil means one.
	Streams func(bytes int) int
	// Failed is closed when the Transport is broken. Err returns what broke it, and
	// nil until then. A Transport has both or neither.
	Failed <-chan struct{}
	Err    func() error
	// Free frees memory that other ranks may use while a call is in progress, which
	// Close cannot know. It is called after Close, at most once. Without Free the garbage
	// collector frees that memory with the Transport.
	Free func()
}

// Able is a Transport with Abilities.
type Able interface {
	Transport
	Abilities() Abilities
}

// AbilitiesOf returns what t can do besides sending messages. An engine asks once.
// A wrapper that passes some of them on has its own Abilities, and copies those
// that stay true.
func AbilitiesOf(t Transport) Abilities {
	// This is the only type assertion on a Transport. Abilities is not a method of
	// Transport because wrappers embed one: they would inherit abilities that bypass
	// their own Send and Recv.
	if a, ok := t.(Able); ok {
		return a.Abilities()
	}
	return Abilities{}
}

// A Poster sends in the goroutine of its caller. What the network does not accept
// at once leaves during Recv and Flush.
type Poster interface {
	// Post sends a message to a rank and may return before it has left. It may use the
	// bytes of the parts until Flush returns, and h and the list of parts only until it
	// returns itself.
	Post(to int, h *Header, parts [][]byte) error
	// Flush waits until everything posted has left.
	Flush(ctx context.Context) error
}

// A Reducer carries out operations in memory that all ranks share. No Send and no
// Recv is in progress meanwhile. If another rank's operation has a different
// Header, the error is a *MismatchError.
type Reducer interface {
	// AllReduce leaves in o.Dst the reduction of all ranks' o.Src, in ring order.
	// The two may be the same memory. Even after an error, no other rank writes
	// into that memory afterwards.
	AllReduce(o *Operation) error
	// Exchange carries out any other call whose pieces have one length: every rank shows
	// the others what it gives, waits at least until those have that it takes from, and calls
	// o.Finish. o.Len is the most that a rank gives, and at most ExchangeBytes. See Call.Gives
	// and Call.Takes.
	Exchange(o *Operation) error
	// Barrier returns when every rank has called it.
	Barrier(o *Operation) error
}
