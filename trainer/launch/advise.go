package launch

import (
	"errors"
	"fmt"
	"syscall"
)

// advise adds to the error of starting a process which limit the user can raise.
func advise(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w: raise the limit of open files (ulimit -n), or start fewer workers", err)
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("%w: raise the limit of processes (ulimit -u, or pids.max of the control group), or start fewer workers", err)
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("%w: free some memory, or start fewer workers", err)
	}
	return err
}
