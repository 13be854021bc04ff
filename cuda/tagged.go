//go:build gpu && !(cgo && linux)

package cuda

const untagged = ""
