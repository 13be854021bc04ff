//go:build !linux

package tcp

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/collective"
)

// drive and lane are of Linux: elsewhere every Link is moved by goroutines.
type (
	drive struct{}
	lane  struct{}
)

func (d *drive) equip(collective.View, int) {}

func (d *drive) engage(int, []*Link) []*lane { return nil }

func (l *lane) shut() {}

func (t *Transport) free() {}

// Post is not possible on this system; Abilities does not offer it.
func (t *Transport) Post(int, *collective.Header, [][]byte) error { return errors.ErrUnsupported }

// Flush has nothing to wait for.
func (t *Transport) Flush(context.Context) error { return nil }

func (t *Transport) driveIn(context.Context, int, *collective.Header, [][]byte) error {
	return errors.ErrUnsupported
}
