package keyed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// A Remote is a Store whose values are on the servers of a group. Pull and Push send all
// requests before they wait for answers.
//
// If a rank of the group fails, all calls return a *collective.RankError that names it, until
// End; after that, they return store.ErrClosed. The end of a call's ctx breaks nothing.
type Remote struct {
	ranks
	messages *collective.Messages

	sending chan struct{} // has room for the token of the goroutine that sends or ends
	out     []byte        // the request in progress, of that goroutine
	ended   bool          // End has begun, of that goroutine

	stop      context.CancelFunc // ends receiving
	receiving sync.WaitGroup

	mu        sync.Mutex
	directory *directory
	calls     map[uint32]*call // by tag: those without an answer
	tag       uint32           // of the last call
	err       error            // why there are no more answers
}

var _ Store = (*Remote)(nil)

// Connect returns the Store that the servers of g hold. The last ranks of g are the servers,
// which call Serve at the same time as the others call Connect. The group makes no other
// calls until each client has called End.
func Connect(ctx context.Context, g *collective.Group, servers int) (*Remote, error) {
	rs, err := ranksOf(g, servers)
	if err != nil {
		return nil, err
	}
	if g.Rank() >= rs.clients {
		return nil, fmt.Errorf("keyed: %s is one of the last %d, which are servers: call Serve", rs.describe(g.Rank()), servers)
	}
	d, err := rs.exchange(ctx, nil)
	if err != nil {
		return nil, err
	}
	m, err := g.Messages(ctx)
	if err != nil {
		return nil, fmt.Errorf("keyed: %w", err)
	}
	r := &Remote{ranks: rs, messages: m, sending: make(chan struct{}, 1), directory: d, calls: make(map[uint32]*call)}
	receiving, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.receiving.Go(func() {
		err := r.receive(receiving)
		if receiving.Err() != nil {
			err = store.ErrClosed
		}
		r.fail(err)
	})
	return r, nil
}

// End ends the use of the servers, and the calls in progress. It returns when all clients
// have called it, and the group may then make calls again. The values are still in the
// Locals of the servers. The end of ctx breaks the group.
func (r *Remote) End(ctx context.Context) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	if r.ended {
		return store.ErrClosed
	}
	r.ended = true
	r.stop()
	r.receiving.Wait()
	r.fail(store.ErrClosed) // the group may have failed before
	if err := r.messages.End(ctx); err != nil {
		return fmt.Errorf("keyed: ending: %w", err)
	}
	return nil
}

// Get implements store.Store.
func (r *Remote) Get(ctx context.Context, key string) (v store.Value, version uint64, err error) {
	c := Copy{Key: key}
	err = r.all(ctx, 1, func(int) (*call, error) { return r.pull(ctx, &c) }, nil)
	return c.Value, c.Version, err
}

// Set implements store.Store.
func (r *Remote) Set(ctx context.Context, key string, v store.Value, version uint64) (after uint64, err error) {
	if err := usable(ctx, key); err != nil {
		return 0, err
	}
	if err := v.Check(); err != nil {
		return 0, err
	}
	where := request{op: opAssign, key: key, version: uint64(len(v.Data))}
	if version != 0 && version != store.Any { // no new key has this version
		where = request{op: opFind, key: key}
	}
	server, err := r.server(ctx, where)
	if where.op == opFind && errors.Is(err, store.ErrNotFound) {
		err = &store.VersionError{Key: key, Want: version}
	}
	if err != nil {
		return 0, err
	}
	err = r.all(ctx, 1, func(int) (*call, error) {
		return r.send(ctx, server, request{op: opSet, key: key, value: v, version: version}, nil)
	}, func(a answer) { after = a.version })
	return after, err
}

// Keys implements store.Store.
func (r *Remote) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := context.Cause(ctx); err != nil || len(prefix) > store.MaxKey {
		return nil, err
	}
	lists := make([]Copy, r.servers())
	err := r.all(ctx, len(lists), func(i int) (*call, error) {
		return r.send(ctx, r.clients+i, request{op: opKeys, key: prefix}, &lists[i])
	}, nil)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, l := range lists {
		if len(l.Value.Data) > 0 {
			keys = append(keys, strings.Split(string(l.Value.Data), "\n")...)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// Push implements Store.
func (r *Remote) Push(ctx context.Context, gradients ...Gradient) error {
	return r.all(ctx, len(gradients), func(i int) (*call, error) {
		g := &gradients[i]
		if err := g.Value.Check(); err != nil {
			return nil, err
		}
		server, err := r.holder(ctx, g.Key)
		if err != nil {
			return nil, err
		}
		return r.send(ctx, server, request{op: opPush, key: g.Key, value: g.Value}, nil)
	}, nil)
}

// Pull implements Store.
func (r *Remote) Pull(ctx context.Context, copies []Copy) (changed int, err error) {
	err = r.all(ctx, len(copies), func(i int) (*call, error) { return r.pull(ctx, &copies[i]) }, func(a answer) {
		if a.status == statusValue {
			changed++
		}
	})
	return changed, err
}

// pull sends the request that updates a copy.
func (r *Remote) pull(ctx context.Context, c *Copy) (*call, error) {
	server, err := r.holder(ctx, c.Key)
	if err != nil {
		return nil, err
	}
	return r.send(ctx, server, request{op: opPull, key: c.Key, version: c.Version}, c)
}

// holder returns the rank of the server that holds a key.
func (r *Remote) holder(ctx context.Context, key string) (int, error) {
	if err := usable(ctx, key); err != nil {
		return 0, err
	}
	return r.server(ctx, request{op: opFind, key: key})
}

// server returns the rank of the server of a key. If this rank does not know it yet, it
// sends q to the first server.
func (r *Remote) server(ctx context.Context, q request) (int, error) {
	r.mu.Lock()
	server, known := r.directory.servers[q.key]
	r.mu.Unlock()
	if known || r.servers() == 1 {
		return r.clients + server, nil
	}
	found := uint64(0)
	err := r.all(ctx, 1, func(int) (*call, error) { return r.send(ctx, r.clients, q, nil) }, func(a answer) { found = a.version })
	switch {
	case err != nil:
		return 0, err
	case found >= uint64(r.servers()):
		return 0, fmt.Errorf("keyed: %s names server %d of %d: run the same version on every machine", r.describe(r.clients), found, r.servers())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.directory.servers[q.key] = int(found)
	return r.clients + int(found), nil
}

// receive receives answers until ctx ends, or the group breaks.
func (r *Remote) receive(ctx context.Context) error {
	var in []byte
	for {
		found, err := r.messages.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("keyed: all servers have ended: run the same version on every machine")
		case err != nil:
			return fmt.Errorf("keyed: waiting for answers: %w", err)
		case found.End:
			continue
		case found.From < r.clients || found.DType != collective.Uint8 || found.Len > maxMessage:
			return fmt.Errorf("keyed: %s sends what no server sends: run the same version on every machine", r.describe(found.From))
		}
		in = slices.Grow(in[:0], found.Len)[:found.Len]
		if err := r.messages.Recv(context.WithoutCancel(ctx), collective.Of(in)); err != nil {
			return fmt.Errorf("keyed: receiving an answer: %w", err)
		}
		a, err := decodeAnswer(in)
		if err != nil {
			return fmt.Errorf("keyed: the answer of %s is %w", r.describe(found.From), err)
		}
		r.deliver(found.Tag, a)
	}
}
