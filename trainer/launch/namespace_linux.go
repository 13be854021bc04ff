package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// threadNetwork names the network namespace of the thread that opens it.
const threadNetwork = "/proc/thread-self/ns/net"

// A namespace is a network namespace, held open.
type namespace struct {
	file *os.File // closed on exec, so that no worker keeps it open
}

// newNamespaces makes n empty network namespaces.
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

// do carries out f in the namespace, on the calling goroutine. Child processes
// that f starts are born there.
func (s *namespace) do(f func() error) error {
	return away(func() error {
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("setns: %w", err)
		}
		return f()
	})
}

func (s *namespace) close() error { return s.file.Close() }

// away carries out f, which may take the thread to other network namespaces,
// and brings it home. If that fails the goroutine stays locked to the thread,
// so that no other goroutine finds itself abroad.
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
