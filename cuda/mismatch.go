package cuda

import "fmt"

// mismatch says that a library is of a newer CUDA than the driver, which then may
// refuse what it does; nil if it is not, or if nobody knows.
func mismatch(library *Shared, major int) error {
	loaded.Lock()
	version := loaded.version
	loaded.Unlock()
	if library == nil || version == 0 || major <= version/1000 {
		return nil
	}
	l := library.Library
	return fmt.Errorf("%s (%s) is of CUDA %d, and the driver supports only CUDA %s: update the NVIDIA driver, or set %s to a %s of CUDA %d",
		l.Name, library.Path, major, versionText(version), l.Variable, l.Name, version/1000)
}

// CompilerMismatch says that NVRTC is of a newer CUDA than the driver, which then may
// not load what NVRTC compiles. It is nil if it is not, or before either was loaded.
func CompilerMismatch() error {
	compiler.Lock()
	library, major := compiler.library, compiler.major
	compiler.Unlock()
	return mismatch(library, major)
}

// blasMismatch says that cuBLASLt is of a newer CUDA than the driver, with which it
// does not start.
func blasMismatch() error {
	lt.Lock()
	library := lt.library
	lt.Unlock()
	if library == nil {
		return nil
	}
	return mismatch(library, blasVersion()/10000)
}
