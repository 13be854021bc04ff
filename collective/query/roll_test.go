package query_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/query"
)

// A fake is a Watcher with fixed answers.
type fake struct {
	view collective.View
	none bool // no View is known
	seen []collective.Member
}

func (f fake) View(ctx context.Context) (collective.View, error) {
	if f.none {
		<-ctx.Done()
		return collective.View{}, ctx.Err()
	}
	return f.view, nil
}

func (f fake) Members() []collective.Member { return f.seen }

func (f fake) Ask(ctx context.Context, m collective.Member, question []byte) ([]byte, error) {
	switch m.Local {
	case 1:
		return nil, errors.New("refused")
	case 2:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return fmt.Appendf(nil, "%s of %s", question, m.Name), nil
}

func member(local int, nonce uint64) collective.Member {
	return collective.Member{Name: fmt.Sprintf("n/%d", local), Node: "n", Local: local, Nonce: nonce, Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:7946")}}
}

// Ranks come first, whether or not gossip still sees them. A new process with an
// old name is another member.
func TestRoll(t *testing.T) {
	f := fake{view: collective.View{Job: 10, Epoch: 3, Members: []collective.Member{member(0, 1), member(1, 1)}}, seen: []collective.Member{member(0, 1), member(1, 2), member(5, 1)}}
	r := query.Read(t.Context(), f, time.Minute)
	require.Equal(t, "000000000000000a", r.Job)
	require.EqualValues(t, 3, r.Epoch)
	require.Equal(t, 2, r.Size)
	type line struct {
		name  string
		rank  int
		alive bool
	}
	var lines []line
	for _, m := range r.Members {
		rank := -1
		if m.Rank != nil {
			rank = *m.Rank
		}
		require.Equal(t, []string{"127.0.0.1:7946"}, m.Addrs)
		lines = append(lines, line{m.Name, rank, m.Alive})
	}
	require.Equal(t, []line{{"n/0", 0, true}, {"n/1", 1, false}, {"n/1", -1, true}, {"n/5", -1, true}}, lines)

	r = query.Read(t.Context(), fake{none: true, seen: f.seen}, time.Millisecond)
	require.Empty(t, r.Job)
	require.Len(t, r.Members, 3)
	require.Nil(t, r.Members[0].Rank)
}

// Members that fail or do not answer in time get nil, and Ask returns when ctx
// ends.
func TestAsk(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	answers := query.Ask(ctx, fake{}, []collective.Member{member(2, 1), member(0, 1), member(1, 1)}, []byte("step"))
	require.Equal(t, [][]byte{nil, []byte("step of n/0"), nil}, answers)
}
