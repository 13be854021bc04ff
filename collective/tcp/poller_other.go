//go:build !linux

package tcp

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/collective"
)

// poller and socket exist only on Linux. On other systems, goroutines use every Link.
type (
	poller struct{}
	socket struct{}
)

func (p *poller) prepare(collective.View, int) {}

func (p *poller) adopt(int, []*Link) []*socket { return nil }

func (s *socket) shutdown() {}

func (t *Transport) closeSockets() {}

// Post is not supported on this system. Abilities does not offer it.
func (t *Transport) Post(int, *collective.Header, [][]byte) error { return errors.ErrUnsupported }

// Flush does nothing.
func (t *Transport) Flush(context.Context) error { return nil }

func (t *Transport) recvFromSockets(context.Context, int, *collective.Header, [][]byte) error {
	return errors.ErrUnsupported
}

func (t *Transport) nextFromSockets(context.Context, []int, *collective.Header) (int, error) {
	return -1, errors.ErrUnsupported
}
