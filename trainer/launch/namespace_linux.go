package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// threadNetwork is the network namespace of the thread that opens it.
const threadNetwork = "/proc/thread-self/ns/net"

// A namespace is an open network namespace.
type namespace struct {
	file *os.File // closed on exec, so that workers do not keep it open
}

// newNamespaces creates n empty network namespaces.
func newNamespaces(n int) ([]*namespace, error) {
	all := make([]*namespace, 0, n)
	err := away(func() error {
		for range n {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("unshare: %w", err)
			}
			file, err := os.Open(threadNetwork)
			if err != nil {
				return err
			}
			all = append(all, &namespace{file})
		}
		return nil
	})
	if err != nil {
		for _, s := range all {
			_ = s.close()
		}
		return nil, err
	}
	return all, nil
}

// do runs f in the namespace, on the calling goroutine. Child processes that f starts are
// in the namespace too.
func (s *namespace) do(f func() error) error {
	return away(func() error {
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("setns: %w", err)
		}
		return f()
	})
}

func (s *namespace) close() error { return s.file.Close() }

// away runs f, which may move the thread to other network namespaces, and then moves the
// thread back. If that fails, the goroutine stays locked to the thread, so that no other
// goroutine ends up in the wrong namespace.
func away(f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open(threadNetwork)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = home.Close() }()
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, fmt.Errorf("setns back: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}
