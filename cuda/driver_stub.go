//go:build !(gpu && cgo && linux)

package cuda

import (
	"runtime"
	"unsafe"
)

// supported says why this program cannot use a GPU. The functions below are never
// reached, because Open fails and nothing works without a Device.
func supported() error {
	switch {
	case runtime.GOOS != "linux":
		return unavailablef("ringtrain uses GPUs on Linux only, and this is %s", runtime.GOOS)
	case untagged != "":
		return unavailablef("%s", untagged)
	}
	return unavailablef("this binary is built with -tags gpu, but without cgo: build it with CGO_ENABLED=1 and a C compiler")
}

func threadID() int { return -1 } // matches no thread

func openLibrary(string) (uintptr, error)         { return 0, supported() }
func librarySymbol(uintptr, string) uintptr       { return 0 }
func closeLibrary(uintptr)                        {}
func libraryFile(uintptr) string                  { return "" }
func bindDriver(uintptr) (missing string)         { return "" }
func unbindDriver()                               {}
func initDriver() error                           { return supported() }
func driverVersion() (int, error)                 { return 0, supported() }
func deviceCount() (int, error)                   { return 0, supported() }
func deviceInfo(int) (Info, error)                { return Info{}, supported() }
func retainPrimary(int) error                     { return supported() }
func releasePrimary(int) error                    { return supported() }
func memAlloc(int) (Ptr, error)                   { return 0, supported() }
func memFree(Ptr) error                           { return supported() }
func memInfo() (free, total uint64, err error)    { return 0, 0, supported() }
func hostAlloc(int, bool) (unsafe.Pointer, error) { return nil, supported() }
func hostFree(unsafe.Pointer) error               { return supported() }
func hostDevice(unsafe.Pointer) (Ptr, error)      { return 0, supported() }

func copyIn(Ptr, unsafe.Pointer, int, uintptr) error  { return supported() }
func copyOut(unsafe.Pointer, Ptr, int, uintptr) error { return supported() }
func copyDevice(Ptr, Ptr, int, uintptr) error         { return supported() }
func fill8(Ptr, byte, int, uintptr) error             { return supported() }
func fill32(Ptr, uint32, int, uintptr) error          { return supported() }

func streamNew(int) (uintptr, error)     { return 0, supported() }
func streamDestroy(uintptr) error        { return supported() }
func streamDone(uintptr) (bool, error)   { return false, supported() }
func streamSync(uintptr) error           { return supported() }
func streamWait(uintptr, uintptr) error  { return supported() }
func eventNew(bool) (uintptr, error)     { return 0, supported() }
func eventRecord(uintptr, uintptr) error { return supported() }
func eventDone(uintptr) (bool, error)    { return false, supported() }
func eventSync(uintptr) error            { return supported() }
func eventDestroy(uintptr) error         { return supported() }

func eventElapsed(uintptr, uintptr) (milliseconds float64, err error) { return 0, supported() }

func captureBegin(uintptr) error                                    { return supported() }
func captureEnd(uintptr) (graph uintptr, err error)                 { return 0, supported() }
func capturing(uintptr) (bool, error)                               { return false, supported() }
func graphInstantiate(uintptr) (exec uintptr, nodes int, err error) { return 0, 0, supported() }
func graphUpload(uintptr, uintptr) error                            { return supported() }
func graphLaunch(uintptr, uintptr) error                            { return supported() }
func graphDestroy(uintptr) error                                    { return supported() }
func execDestroy(uintptr) error                                     { return supported() }

func moduleLoad([]byte) (uintptr, error)              { return 0, supported() }
func moduleUnload(uintptr) error                      { return supported() }
func moduleFunction(uintptr, string) (uintptr, error) { return 0, supported() }
func functionAttribute(uintptr, int) (int, error)     { return 0, supported() }

func launch(uintptr, *Batch) (at int, err error) { return 0, supported() }

func bindNVRTC(*Shared) error { return supported() }

func describeNVRTC() (major, minor int, archs []int, err error) { return 0, 0, nil, supported() }

func runNVRTC(Source, []string, bool) (image []byte, log string, err error) {
	return nil, "", supported()
}

func bindBLAS(*Shared) error       { return supported() }
func blasVersion() int             { return 0 }
func blasCreate() (uintptr, error) { return 0, supported() }
func blasDestroy(uintptr) error    { return supported() }

// prepared is empty without a GPU.
type prepared struct{ choice int }

func prepare(*BLAS, Product) (prepared, error) { return prepared{}, supported() }
func (p *prepared) count() int                 { return 0 }
func (p *prepared) run(*BLAS, Stream) error    { return supported() }
func (p *prepared) release()                   {}

func bindDNN(*Shared) error            { return supported() }
func closeDNNParts()                   {}
func describeDNN() (version, cuda int) { return 0, 0 }
func dnnCreate() (uintptr, error)      { return 0, supported() }
func dnnDestroy(uintptr) error         { return supported() }

// convolved is empty without a GPU.
type convolved struct{}

func convolve(*DNN, Convolution) (convolved, error)            { return convolved{}, supported() }
func (m *convolved) algorithms() []int                         { return nil }
func (m *convolved) run(*DNN, Stream, int, ConvOperands) error { return supported() }
func (m *convolved) release()                                  {}
