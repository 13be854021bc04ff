package cuda

import "fmt"

// mismatch returns an error if a library belongs to a newer CUDA than the driver supports.
// The driver may then reject what the library does. It returns nil if the library is not
// newer, or if the versions are not known. major is the library's major version, which is
// that of its CUDA.
func mismatch(library *Shared, version string, major int) error {
	loaded.Lock()
	driver := loaded.version
	loaded.Unlock()
	if library == nil || driver == 0 || major <= driver/1000 {
		return nil
	}
	l := library.Library
	return fmt.Errorf("%s %s (%s) is newer than the driver, which supports only CUDA %s: update the NVIDIA driver, or set %s to one of CUDA %d",
		l.Name, version, library.Path, versionText(driver), l.Variable, driver/1000)
}

// CompilerMismatch returns an error if NVRTC belongs to a newer CUDA than the driver
// supports. The driver may then not load what NVRTC compiles. It returns nil until both
// are loaded.
func CompilerMismatch() error {
	compiler.Lock()
	defer compiler.Unlock()
	return compilerMismatch()
}

// compilerMismatch is CompilerMismatch for callers that hold the compiler's lock.
func compilerMismatch() error {
	return mismatch(compiler.library, fmt.Sprintf("%d.%d", compiler.major, compiler.minor), compiler.major)
}

// BLASMismatch returns an error that wraps ErrUnavailable if cuBLASLt belongs to a newer
// CUDA than the driver supports. Then cuBLASLt does not start. It returns nil until both
// are loaded.
func BLASMismatch() error {
	if err := blasMismatch(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

func blasMismatch() error {
	library := theBLAS()
	if library == nil {
		return nil
	}
	version := blasVersion()
	return mismatch(library, blasVersionText(version), version/10000)
}
