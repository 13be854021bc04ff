package keyed

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// Ranks that disagree about who serves, or call the wrong function, get an error.
func TestRanksDisagree(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	for servers, says := range map[int]string{
		0: "the number of servers must be from 1 to 2 in a group of 3 ranks, not 0",
		3: "the number of servers must be from 1 to 2 in a group of 3 ranks, not 3",
	} {
		_, err := Connect(t.Context(), groups[0], servers)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, Serve(t.Context(), groups[2], servers, newLocal(t, sgd())), says)
	}
	_, err := Connect(t.Context(), groups[1], 2)
	require.ErrorContains(t, err, "is one of the last 2, which are servers: call Serve")
	require.ErrorContains(t, Serve(t.Context(), groups[1], 1, newLocal(t, sgd())), "is a client, because the servers are the last 1: call Connect")
	l := newLocal(t, sgd())
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		var err error
		switch g.Rank() {
		case 0:
			_, err = Connect(ctx, g, 1)
		case 1:
			_, err = Connect(ctx, g, 1)
		case 2:
			err = Serve(ctx, g, 2, l)
		}
		assert.ErrorContains(t, err, "pass the same number on every rank")
	})
}

// Two servers that hold the same key cannot serve together.
func TestKeysTwice(t *testing.T) {
	held := locals(t, 2, sgd())
	for _, l := range held {
		_, err := l.Set(t.Context(), "w", store.Raw(nil), 0)
		require.NoError(t, err)
	}
	collectivetest.Run(t, collectivetest.Local(t, 3), func(ctx context.Context, g *collective.Group) {
		var err error
		if g.Rank() == 0 {
			_, err = Connect(ctx, g, 2)
		} else {
			err = Serve(ctx, g, 2, held[g.Rank()-1])
		}
		assert.ErrorContains(t, err, `servers 0 and 1 both hold "w": start one of them with a new store`)
	})
}

// A rank that fails ends the calls of all others, with an error that names it.
func TestRankFails(t *testing.T) {
	full := errors.New("the memory is full")
	for name, fail := range map[string]func(g *collective.Group){
		"aborts": func(g *collective.Group) { g.Abort(full) },
		"leaves": func(g *collective.Group) { _ = g.Close() },
	} {
		for culprit := range 4 { // two clients, then two servers
			t.Run(name, func(t *testing.T) {
				held := locals(t, 2, sgd())
				groups := collectivetest.Local(t, 4)
				collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
					var err error
					switch {
					case g.Rank() < 2:
						err = failingClient(ctx, g, culprit, fail)
					case g.Rank() == culprit:
						_, err := ranks{g, 2}.exchange(ctx, nil)
						assert.NoError(t, err)
						fail(g)
					default:
						err = Serve(ctx, g, 2, held[g.Rank()-2])
					}
					if g.Rank() == culprit {
						return
					}
					var lost *collective.RankError
					if assert.ErrorAs(t, err, &lost, "rank %d", g.Rank()) {
						assert.Equal(t, culprit, lost.Rank, "rank %d: %v", g.Rank(), err)
						assert.NotContains(t, err.Error(), "\n")
					}
				})
			})
		}
	}
}

// failingClient uses a store until a rank fails, which may be this one.
func failingClient(ctx context.Context, g *collective.Group, culprit int, fail func(g *collective.Group)) error {
	s, err := Connect(ctx, g, 2)
	if err != nil {
		return err
	}
	if g.Rank() == culprit {
		fail(g)
	}
	for err == nil {
		_, err = s.Set(ctx, "w", store.Raw(nil), store.Any)
	}
	if g.Rank() != culprit {
		if _, _, again := s.Get(ctx, "w"); !errors.As(again, new(*collective.RankError)) {
			return again
		}
	}
	if ended := s.End(ctx); ended == nil {
		return errors.New("a broken group has ended")
	}
	return err
}

// A server whose backend fails, or whose context ends, ends the others, and is named.
func TestServerFails(t *testing.T) {
	for name, fail := range map[string]func(l *Local, cancel func()){
		"backend": func(l *Local, _ func()) { _ = l.backend.Close() },
		"context": func(_ *Local, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLocal(t, sgd())
			_, err := l.Set(t.Context(), "w", tensor(t, []float32{1}), 0)
			require.NoError(t, err)
			serving, cancel := context.WithCancel(t.Context())
			defer cancel()
			collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
				if g.Rank() == 1 {
					assert.Error(t, Serve(serving, g, 1, l))
					return
				}
				s, err := Connect(ctx, g, 1)
				if !assert.NoError(t, err) {
					return
				}
				fail(l, cancel)
				for err == nil {
					err = s.Push(ctx, Gradient{"w", tensor(t, []float32{1})})
				}
				var lost *collective.RankError
				if assert.ErrorAs(t, err, &lost) {
					assert.Equal(t, 1, lost.Rank)
				}
				assert.ErrorAs(t, s.End(ctx), &lost)
			})
		})
	}
}

// The first server refuses what no client sends, and serves on. Nothing changes.
func TestMalformedRequests(t *testing.T) {
	held := locals(t, 1, sgd())
	collectivetest.Run(t, collectivetest.Local(t, 3), func(ctx context.Context, g *collective.Group) {
		switch g.Rank() {
		case 0:
			s, err := Connect(ctx, g, 1)
			if assert.NoError(t, err) {
				_, err = s.Set(ctx, "w", store.Raw([]byte("x")), 0)
				assert.NoError(t, err)
				assert.NoError(t, s.End(ctx))
			}
		case 1:
			_, err := ranks{g, 2}.exchange(ctx, nil)
			assert.NoError(t, err)
			m, err := g.Messages(ctx)
			assert.NoError(t, err)
			whole := request{op: opSet, key: "new", value: store.Raw([]byte("abc"))}.append(nil)
			wrong := request{op: opSet, key: "new", value: store.Value{Type: store.Float32, Shape: []int{2}, Data: []byte{1}}}.append(nil)
			for _, v := range []collective.Vector{
				collective.Of([]byte(nil)), collective.Of(whole[:5]), collective.Of(whole[:13]), collective.Of(wrong), collective.Of([]float32{1}),
				collective.Of(request{op: opEnd, key: "new"}.append(nil)), collective.Of(append(request{op: opPull, key: "w"}.append(nil), 1)),
				collective.Of(request{op: opAssign, version: store.MaxValue + 1, key: "new"}.append(nil)),
				collective.Of(request{op: opAssign, key: "a\nb"}.append(nil)), collective.Of(make([]byte, maxMessage+1)),
			} {
				assert.Equal(t, statusRefused, ask(t, ctx, m, v).status, "%v", v)
			}
			assert.Equal(t, statusNotFound, ask(t, ctx, m, collective.Of(request{op: opFind, key: "new"}.append(nil))).status)
			assert.NoError(t, m.End(ctx))
		default:
			assert.NoError(t, Serve(ctx, g, 1, held[0]))
		}
	})
	require.Equal(t, map[string]int{"w": 1}, held[0].sizes())
}

// ask sends a message to rank 2 and returns the answer.
func ask(t *testing.T, ctx context.Context, m *collective.Messages, v collective.Vector) answer {
	const tag = 77
	var sending sync.WaitGroup
	sending.Go(func() { assert.NoError(t, m.Send(ctx, 2, tag, v)) })
	defer sending.Wait()
	for {
		found, err := m.Next(ctx)
		if !assert.NoError(t, err) {
			return answer{}
		}
		if found.End {
			continue
		}
		assert.EqualValues(t, tag, found.Tag)
		in := make([]byte, found.Len)
		assert.NoError(t, m.Recv(ctx, collective.Of(in)))
		a, err := decodeAnswer(in)
		assert.NoError(t, err)
		return a
	}
}
