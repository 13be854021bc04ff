package collective_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// An error names the culprit, what it failed to do, the call and the epoch.
func TestRankErrorText(t *testing.T) {
	barrier := collective.Call{Kind: collective.KindBarrier}
	for want, e := range map[string]collective.RankError{
		"rank 1 (n/1) could not connect in epoch 2: it did not connect in time":                                             {Phase: "connect", Err: collective.ErrNotConnected},
		"rank 1 (n/1) failed during Barrier() #3 in epoch 2 (receive): it closed the group while other ranks still used it": {Phase: "receive", Op: barrier, Err: collective.ErrLeft},
		"rank 1 (n/1) failed in epoch 2 (heartbeat): no heartbeat: the process is stopped or its network is down":           {Phase: "heartbeat", Err: collective.ErrSilent},
		"rank 1 (n/1) was late during Barrier() #3 in epoch 2: it is alive but did not make the call before the deadline":   {Phase: "not called", Op: barrier, Err: collective.ErrLate},
		"rank 1 (n/1) cancelled Barrier() #3 in epoch 2: context canceled":                                                  {Phase: "cancelled", Op: barrier, Err: context.Canceled},
		"rank 1 (n/1) cancelled in epoch 2: context canceled":                                                               {Phase: "cancelled", Err: context.Canceled},
		"mismatch with rank 1 (n/1) during Barrier() #3 in epoch 2: ranks made different calls":                             {Phase: "mismatch", Op: barrier, Err: collective.ErrMismatch},
		"rank 1 (n/1) failed during Barrier() #3 in epoch 2: closed (reported by rank 0)":                                   {Phase: "failed", Op: barrier, Err: &collective.ReportedError{By: 0, Err: collective.ErrClosed}},
	} {
		e.Rank, e.Node, e.Epoch, e.Seq = 1, "n/1", 2, 3
		require.EqualError(t, &e, want)
	}
	nameless := &collective.RankError{Rank: 1, Phase: "failed", Err: collective.ErrClosed}
	require.EqualError(t, nameless, "rank 1 failed in epoch 0: closed")
	nameless.Err = errors.Join(collective.ErrClosed, collective.ErrLost)
	require.EqualError(t, nameless, "rank 1 failed in epoch 0: closed; "+collective.ErrLost.Error())
}

// A rank that Sub leaves out closes its nil Group as the others close theirs.
func TestCloseNilGroup(t *testing.T) {
	require.NoError(t, (*collective.Group)(nil).Close())
}
