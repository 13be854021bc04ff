package shm_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/shm"
)

func TestMessages(t *testing.T) {
	collectivetest.TestMessages(t, groups)
	collectivetest.TestTurns(t, groups)
}

// Some ranks share memory, others are on another host.
func TestMessagesMixed(t *testing.T) {
	mixed := func(t testing.TB, n int) []*collective.Group {
		views, transports := connect(t, n, twoHosts, shm.Options{})
		return collectivetest.Groups(t, views, transports, collective.Options{})
	}
	collectivetest.TestMessages(t, mixed)
	collectivetest.TestTurns(t, mixed)
}

// exchange is what a rank of a job does whose ranks exchange messages: the highest one
// sends to rank 0 until that fails, and the others receive what comes.
func exchange(ctx context.Context, g *collective.Group) error {
	m, err := g.Messages(ctx)
	if err != nil {
		return err
	}
	s := make([]float32, 300_000)
	waits := 0 < g.Rank() && g.Rank() < g.Size()-1
	for n := 0; err == nil; n++ {
		if n == 1 || n == 0 && waits {
			fmt.Println("running")
		}
		if g.Rank() == g.Size()-1 {
			err = m.Send(ctx, 0, 0, collective.Of(s))
		} else if _, err = m.Next(ctx); err == nil && n%2 == 0 {
			err = m.Recv(ctx, collective.Of(s))
		}
	}
	var lost *collective.RankError
	if errors.As(err, &lost) {
		fmt.Println("broken", lost.Rank, err)
		return nil
	}
	return err
}

// All ranks that wait for messages, or receive one, name the sender when it is killed or
// stopped.
func TestEndOfSenderIsNamed(t *testing.T) {
	for end, want := range map[syscall.Signal]error{syscall.SIGKILL: collective.ErrLost, syscall.SIGSTOP: collective.ErrSilent} {
		for _, over := range []int{messagesOverSHM, messagesOverTCP} {
			t.Run(fmt.Sprintf("%v, %d", end, over), func(t *testing.T) {
				if end == syscall.SIGSTOP {
					if testing.Short() {
						t.Skip("-short: it takes seconds until a stopped rank counts as lost")
					}
					t.Parallel()
				}
				ps := start(t, 4, 0, over, 0)
				for r, p := range ps {
					require.True(t, p.out.Scan(), "rank %d", r)
					require.Equal(t, "running", p.out.Text(), "rank %d", r)
				}
				require.NoError(t, ps[3].Process.Signal(end))
				for _, p := range ps[:3] {
					require.True(t, p.out.Scan())
					require.Regexp(t, fmt.Sprintf(`^broken 3 .*%s`, want), p.out.Text())
				}
			})
		}
	}
}
