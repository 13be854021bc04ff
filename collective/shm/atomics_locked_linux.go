//go:build mips || mipsle || (arm && !arm.7)

package shm

import (
	"fmt"
	"runtime"
)

// whyNot returns why processes of this architecture cannot share memory. Here,
// Go implements 64-bit atomic operations with a lock that other processes do
// not see.
func whyNot() error {
	return fmt.Errorf("%s has no 64-bit atomic operations that work between processes (arm: build with GOARM=7)", runtime.GOARCH)
}
