//go:build mips || mipsle || (arm && !arm.7)

package shm

import (
	"fmt"
	"runtime"
)

// whyNot says why processes of this architecture cannot share memory, or nil.
// Here, Go makes 64-bit atomic operations under a lock that other processes know
// nothing of.
func whyNot() error {
	return fmt.Errorf("%s has no 64-bit atomic operations that work between processes (arm: build with GOARM=7)", runtime.GOARCH)
}
