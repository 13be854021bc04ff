package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/trainer"
)

// Every mismatch between the machines of a job is the user's to mend; that
// somebody does not come is not.
func TestWorkerCode(t *testing.T) {
	for err, want := range map[error]int{
		&membership.DifferError{}: 2, &membership.KeyError{}: 2, fmt.Errorf("x: %w", cluster.ErrInterface): 2,
		&trainer.SettingsError{}: 2, &bench.SpecError{}: 2, usagef("wrong"): 2,
		&membership.WaitError{Err: errJoinTimeout}: 1, &membership.CompleteError{}: 1, errEarly: 1, errors.New("any"): 1,
	} {
		require.Equal(t, want, workerCode(err), "%T", err)
	}
}
