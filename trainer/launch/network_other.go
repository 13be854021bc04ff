//go:build !linux

package launch

import (
	"context"
	"runtime"
)

// A namespace is a network namespace; there are none here.
type namespace struct{}

func (s *namespace) do(func() error) error {
	return cannot("only Linux has them, and this is " + runtime.GOOS)
}
func (s *namespace) close() error { return nil }

// Namespaces makes a network of n nodes on Linux, and fails here.
func Namespaces(context.Context, int, NetworkOptions) (*Network, error) {
	return nil, cannot("only Linux has them, and this is " + runtime.GOOS)
}

func (n *Network) count() ([]Counter, error) {
	return nil, cannot("only Linux has them, and this is " + runtime.GOOS)
}
