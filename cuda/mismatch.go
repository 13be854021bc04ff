package cuda

import "fmt"

// mismatch says that a library is of a newer CUDA than the driver, which then may
// refuse what it does; nil if it is not, or if nobody knows. The major version of the
// library is that of its CUDA.
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

// CompilerMismatch says that NVRTC is of a newer CUDA than the driver, which then may
// not load what NVRTC compiles. It is nil if it is not, or before either was loaded.
func CompilerMismatch() error {
	compiler.Lock()
	defer compiler.Unlock()
	return compilerMismatch()
}

// compilerMismatch is CompilerMismatch for who holds the compiler's lock.
func compilerMismatch() error {
	return mismatch(compiler.library, fmt.Sprintf("%d.%d", compiler.major, compiler.minor), compiler.major)
}

// BLASMismatch says that cuBLASLt is of a newer CUDA than the driver, with which it
// does not start. It has ErrUnavailable, and is nil if it is not, or before either was
// loaded.
func BLASMismatch() error {
	if err := blasMismatch(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

func blasMismatch() error {
	lt.Lock()
	defer lt.Unlock()
	if lt.library == nil {
		return nil
	}
	version := blasVersion()
	return mismatch(lt.library, blasVersionText(version), version/10000)
}
