package crew

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/trainer"
)

// Every mismatch between the machines of a job is the user's to mend; that
// somebody does not come is not.
func TestMismatchesAreUsage(t *testing.T) {
	for err, want := range map[error]bool{
		&membership.DifferError{}: true, &membership.KeyError{}: true, fmt.Errorf("x: %w", cluster.ErrInterface): true,
		&trainer.SettingsError{}: true, Usagef("wrong"): true,
		&membership.WaitError{Err: ErrJoinTimeout}: false, &membership.CompleteError{}: false, ErrEarly: false, errors.New("any"): false,
	} {
		require.Equal(t, want, isUsage(err), "%T", err)
	}
}
