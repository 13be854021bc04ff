package keyed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// Serve serves l to the clients of g, until each has called Remote.End. The last ranks of g
// are the servers, which call Serve at the same time as the others call Connect. Other
// goroutines of this process may use l, too, but with several servers only clients may
// create keys.
//
// If a rank of g fails, Serve returns a *collective.RankError that names it. If something
// fails here, Serve passes the error to Group.Abort, so that the others do not wait. In
// either case, l keeps its values. The ranks that are left can serve them in a new group.
func Serve(ctx context.Context, g *collective.Group, servers int, l *Local) error {
	r, err := ranksOf(g, servers)
	if err != nil {
		return err
	}
	if g.Rank() < r.clients {
		return fmt.Errorf("keyed: %s is a client, because the servers are the last %d: call Connect", r.describe(g.Rank()), servers)
	}
	err = serve(ctx, r, l)
	var lost *collective.RankError
	if err != nil && !errors.As(err, &lost) {
		g.Abort(err)
	}
	return err
}

func serve(ctx context.Context, r ranks, l *Local) error {
	d, err := r.exchange(ctx, l.sizes())
	if err != nil {
		return err
	}
	m, err := r.group.Messages(ctx)
	if err != nil {
		return fmt.Errorf("keyed: %w", err)
	}
	s := &server{ranks: r, local: l, directory: d}
	for clients := r.clients; clients > 0; {
		found, err := m.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("keyed: the clients have ended twice: run the same version on every machine")
		case err != nil:
			return fmt.Errorf("keyed: waiting for requests: %w", err)
		case found.From >= r.clients:
			if !found.End {
				return fmt.Errorf("keyed: %s is a server, and sends a request: run the same version on every machine", r.describe(found.From))
			}
		case found.End:
			clients--
		default:
			if err := s.serve(ctx, m, found); err != nil {
				return fmt.Errorf("keyed: serving %s: %w", r.describe(found.From), err)
			}
		}
	}
	if err := m.End(ctx); err != nil {
		return fmt.Errorf("keyed: %w", err)
	}
	return nil
}

// A server answers requests.
type server struct {
	ranks
	local     *Local
	directory *directory // of all keys, on the first server
	in, out   []byte     // messages
}

// serve receives and answers a request. An error means that the server ends.
func (s *server) serve(ctx context.Context, m *collective.Messages, found collective.Message) error {
	var err error
	if found.DType != collective.Uint8 || found.Len > maxMessage {
		s.out = answer{status: statusRefused, text: errMalformed.Error()}.append(s.out[:0])
	} else {
		s.in = slices.Grow(s.in[:0], found.Len)[:found.Len]
		if err := m.Recv(ctx, collective.Of(s.in)); err != nil {
			return err
		}
		if s.out, err = s.answer(ctx, s.out[:0], s.in); err != nil {
			return err
		}
	}
	return m.Send(ctx, found.From, found.Tag, collective.Of(s.out))
}

// answer appends the answer to a request. An error means that the server ends.
func (s *server) answer(ctx context.Context, out, in []byte) ([]byte, error) {
	q, err := decodeRequest(in)
	if err != nil {
		return answer{status: statusRefused, text: strings.TrimPrefix(err.Error(), store.ErrRefused.Error()+": ")}.append(out), nil
	}
	a := answer{status: statusDone}
	switch q.op {
	case opPull:
		err = s.local.read(ctx, q.key, q.version, func(found *item) {
			out = answer{status: statusValue, version: found.version, value: found.value}.append(out)
		})
	case opSet:
		a.version, err = s.local.Set(ctx, q.key, q.value, q.version)
	case opPush:
		a.version, err = s.local.push(ctx, Gradient{q.key, q.value})
	case opKeys:
		a, err = s.keys(ctx, q.key)
	case opFind, opAssign:
		a, err = s.find(q)
	}
	if err != nil {
		refused := false
		if a, refused = refusal(err); !refused {
			return nil, err
		}
	}
	if len(out) > 0 { // opPull has a value
		return out, nil
	}
	return a.append(out), nil
}

// keys returns the answer to opKeys.
func (s *server) keys(ctx context.Context, prefix string) (answer, error) {
	keys, err := s.local.Keys(ctx, prefix)
	if err != nil {
		return answer{}, err
	}
	lines := store.Raw([]byte(strings.Join(keys, "\n")))
	if err := lines.Check(); err != nil {
		return answer{}, fmt.Errorf("%w: %d keys begin with %q, which is too many to list: use a longer prefix", store.ErrRefused, len(keys), prefix)
	}
	return answer{status: statusValue, value: lines}, nil
}

// find returns the answer to opFind and opAssign.
func (s *server) find(q request) (answer, error) {
	at, known := s.directory.servers[q.key]
	if !known {
		if q.op == opFind {
			return answer{}, fmt.Errorf("%w: %q", store.ErrNotFound, q.key)
		}
		if err := store.CheckKey(q.key); err != nil {
			return answer{}, err
		}
		if q.version > store.MaxValue {
			return answer{}, fmt.Errorf("%w: %v", store.ErrRefused, errMalformed)
		}
		at = s.directory.assign(q.key, int(q.version))
	}
	return answer{status: statusDone, version: uint64(at)}, nil
}
