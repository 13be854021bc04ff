package crew

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/collective/shm"
	"github.com/ringtrain/ringtrain/trainer"
)

// Settings that differ between machines are the user's mistake. A member that does not
// join is not.
func TestMismatchesAreUsage(t *testing.T) {
	for err, want := range map[error]bool{
		&membership.DifferError{}: true, &membership.KeyError{}: true, fmt.Errorf("x: %w", cluster.ErrInterface): true,
		&trainer.SettingsError{}: true, &trainer.TargetError{}: true, Usagef("wrong"): true, &EndError{Err: Usagef("wrong")}: true, shm.ErrNotShared: true,
		&ToldError{"x"}: false, context.Canceled: false,
		&membership.WaitError{Err: ErrJoinTimeout}: false, &membership.CompleteError{}: false, ErrEarly: false, errors.New("any"): false,
	} {
		require.Equal(t, want, isUsage(err), "%T", err)
	}
}
