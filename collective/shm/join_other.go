//go:build !linux

package shm

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

// Join returns under, because processes share memory only on Linux.
func Join(_ context.Context, _ collective.View, under Under, o Options) (collective.Transport, error) {
	if o.Must {
		return nil, fmt.Errorf("%w: processes share memory on Linux only: %w", ErrNotShared, collective.ErrUnsupported)
	}
	return under, nil
}
