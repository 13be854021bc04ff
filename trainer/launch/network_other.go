//go:build !linux

package launch

import (
	"context"
	"runtime"
)

// A namespace is a network namespace; this system has none.
type namespace struct{}

func (s *namespace) do(func() error) error {
	return cannot("only Linux has them, and this is " + runtime.GOOS)
}
func (s *namespace) close() error { return nil }

// Namespaces creates a network of n nodes on Linux. It always fails on this system.
func Namespaces(context.Context, int, NetworkOptions) (*Network, error) {
	return nil, cannot("only Linux has them, and this is " + runtime.GOOS)
}

func (n *Network) count() ([]Counter, error) {
	return nil, cannot("only Linux has them, and this is " + runtime.GOOS)
}
