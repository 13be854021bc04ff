//go:build static || !linux || (!amd64 && !arm64)

package cpu

import (
	"fmt"
	"os"
)

// OpenBLAS returns an error because this build cannot load libraries.
func OpenBLAS() (BLAS, error) {
	if path := os.Getenv(EnvOpenBLAS); path != "" && path != off {
		return nil, fmt.Errorf("cpu: %s is %s, but this build cannot load libraries; unset it, or use a build for Linux without -tags static", EnvOpenBLAS, path)
	}
	return nil, fmt.Errorf("%w: this build cannot load libraries", ErrNoOpenBLAS)
}
