package nccl

import "fmt"

// A Version is a version of NCCL, in the numbering of ncclGetVersion.
type Version int

// Oldest is the oldest version that we support. Non-blocking communicators are older, but until
// 2.19 NCCL knew what a thread had begun only in that thread: an Abort in another one freed a
// communicator that NCCL was still connecting.
const Oldest = Version(21903)

// NewVersion is NCCL_VERSION of NCCL's header. Up to 2.8 a major version counted 1000, since
// then 10000.
func NewVersion(major, minor, patch int) Version {
	if major < 2 || major == 2 && minor <= 8 {
		return Version(major*1000 + minor*100 + patch)
	}
	return Version(major*10000 + minor*100 + patch)
}

// Parts is the reverse of NewVersion.
func (v Version) Parts() (major, minor, patch int) {
	if v < 10000 {
		return int(v / 1000), int(v / 100 % 10), int(v % 100)
	}
	return int(v / 10000), int(v / 100 % 100), int(v % 100)
}

// String returns the version in the usual form, such as "2.27.3".
func (v Version) String() string {
	major, minor, patch := v.Parts()
	return fmt.Sprintf("%d.%d.%d", major, minor, patch)
}
