package cuda

import (
	"fmt"
	"sync"
)

// The versions of cuDNN that work, as it counts them: its header of 8.5 is the oldest that
// the binding was compared with, and what comes after 9 may differ.
const (
	oldestDNN  = 8500
	unknownDNN = 100000
)

// dnn is cuDNN in this process, loaded once.
var dnn struct {
	sync.Mutex
	library *Shared
	version int
}

// openDNN loads cuDNN.
func openDNN() error {
	dnn.Lock()
	defer dnn.Unlock()
	if dnn.library != nil {
		return nil
	}
	library, err := CuDNN.Open()
	if err != nil {
		return err
	}
	if err := bindDNN(library); err != nil {
		return err
	}
	loaded.Lock()
	driver := loaded.version
	loaded.Unlock()
	version, cuda := describeDNN()
	if why := unfitDNN(version, cuda, driver); why != "" {
		return unavailablef("%s is cuDNN %s, %s", library.Path, dnnVersionText(version), why)
	}
	dnn.library, dnn.version = library, version
	return nil
}

// unfitDNN is why a version of cuDNN, for a version of CUDA, does not work with a driver; ""
// if it does.
func unfitDNN(version, cuda, driver int) string {
	switch {
	case version < oldestDNN:
		return fmt.Sprintf("and %s or newer is needed: %s", dnnVersionText(oldestDNN), CuDNN.Get)
	case version >= unknownDNN:
		return "which ringtrain does not know: " + CuDNN.Get
	case driver > 0 && cuda/1000 > driver/1000:
		return fmt.Sprintf("for CUDA %d, and the driver supports CUDA %s: update the driver, or pip install nvidia-cudnn-cu%d", cuda/1000, versionText(driver), driver/1000)
	}
	return ""
}

// DNNVersion is the version of cuDNN, "9.1.0". The error has ErrUnavailable and says in
// one line why there is none that works; it has ErrNotInstalled if there is none at all.
func DNNVersion() (string, error) {
	if err := openDNN(); err != nil {
		return "", err
	}
	dnn.Lock()
	defer dnn.Unlock()
	return dnnVersionText(dnn.version), nil
}

// dnnVersionText is 8907 as 8.9.7, and 90100 as 9.1.0: until 9 a major version counted
// 1000.
func dnnVersionText(v int) string {
	if v < 10000 {
		return fmt.Sprintf("%d.%d.%d", v/1000, v/100%10, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
}

// DNNOptions say how convolutions are computed.
type DNNOptions struct {
	// TF32 lets convolutions round their factors to 10 bits of fraction, which tensor
	// cores take, and transform them by Winograd's method. Without it they are exact but
	// for the rounding of sums.
	TF32 bool
	// Workspace is bytes of device memory for cuDNN; 0 means DNNWorkspace. Algorithms that
	// need more are not used.
	Workspace int
}

// DNN computes convolutions with cuDNN, on one stream at a time.
type DNN struct {
	handle    uintptr
	device    *Device
	workspace Ptr
	size      int
	options   DNNOptions
}

// DNNWorkspace is how many bytes of device memory cuDNN works in, unless DNNOptions say
// otherwise.
const DNNWorkspace = 64 << 20

// NewDNN starts cuDNN. Its convolutions share a workspace, so they are for one stream. It
// cannot be captured. The error is that of DNNVersion, or says what failed.
func (d *Device) NewDNN(o DNNOptions) (*DNN, error) {
	if err := openDNN(); err != nil {
		return nil, err
	}
	n := &DNN{device: d, size: o.Workspace, options: o}
	if n.size == 0 {
		n.size = DNNWorkspace
	}
	var err error
	if n.workspace, err = d.Alloc(n.size); err != nil {
		return nil, fmt.Errorf("workspace of cuDNN: %w", err)
	}
	if n.handle, err = dnnCreate(); err != nil {
		_ = d.Free(n.workspace) // the first failure says more
		return nil, fmt.Errorf("cuDNN (%s) does not start: %w", dnn.library.Path, err)
	}
	return n, nil
}

// Destroy frees the workspace. No convolution is under way or in a graph that is still to
// be launched.
func (n *DNN) Destroy() error {
	err := dnnDestroy(n.handle)
	if freed := n.device.Free(n.workspace); err == nil {
		err = freed
	}
	return err
}

// A ConvPass is which of a convolution's three operands is computed from the others.
type ConvPass int

// The passes.
const (
	// ConvForward sets Y, and adds Bias to each of its planes.
	ConvForward ConvPass = iota
	// ConvWeights adds to W, which is a gradient, from X and the gradient Y.
	ConvWeights
	// ConvInput sets X, which is a gradient, from W and the gradient Y.
	ConvInput
)

// String is the name of the pass.
func (p ConvPass) String() string { return [...]string{"forward", "weights", "input"}[p] }

// A Convolution is one pass of a convolution of float32 images with square filters: X is
// (Rows, Channels, Height, Width), W is (Filters, Channels, Size, Size), and Y is (Rows,
// Filters, and the places at which a filter fits), as nn.Conv has them.
type Convolution struct {
	Pass                           ConvPass
	Rows, Channels, Height, Width  int
	Filters, Size, Stride, Padding int
}

func (c Convolution) outHeight() int { return (c.Height+2*c.Padding-c.Size)/c.Stride + 1 }
func (c Convolution) outWidth() int  { return (c.Width+2*c.Padding-c.Size)/c.Stride + 1 }

// MultiplyAdds is how many products a pass adds up, those with padding included.
func (c Convolution) MultiplyAdds() int {
	return c.Rows * c.Filters * c.outHeight() * c.outWidth() * c.Channels * c.Size * c.Size
}

// Kind names the pass of the convolution, for logs and choices.
func (c Convolution) Kind(tf32 bool) string {
	number := "f32"
	if tf32 {
		number = "tf32"
	}
	return fmt.Sprintf("conv2d %v %dx%dx%dx%d by %dx%dx%d stride %d padding %d %s",
		c.Pass, c.Rows, c.Channels, c.Height, c.Width, c.Filters, c.Size, c.Size, c.Stride, c.Padding, number)
}

// ConvOperands are where a convolution's operands lie.
type ConvOperands struct {
	X, W, Y Ptr
	Bias    Ptr // of ConvForward, Filters elements; 0 for none
}

const convAlignment = 16

// Aligned reports whether cuDNN may be given the operands: its kernels load up to 16 bytes
// at once.
func (o ConvOperands) Aligned() bool { return (o.X|o.W|o.Y|o.Bias)%convAlignment == 0 }

// A ConvPlan is a convolution that is ready to run, on any operands.
type ConvPlan struct {
	dnn         *DNN
	convolution Convolution
	made        convolved
}

// Plan asks cuDNN how a convolution can be computed. It may be called in a capture. The
// error says that cuDNN cannot, which is no fault of the device.
func (n *DNN) Plan(c Convolution) (*ConvPlan, error) {
	if c.Rows < 1 || c.Filters < 1 || c.outHeight() < 1 || c.outWidth() < 1 {
		return nil, fmt.Errorf("cuda: a convolution %s", c.Kind(n.options.TF32))
	}
	made, err := convolve(n, c)
	if err != nil {
		made.release()
		return nil, fmt.Errorf("%s: %w", c.Kind(n.options.TF32), err)
	}
	return &ConvPlan{n, c, made}, nil
}

// Algorithms are cuDNN's numbers of the algorithms that may be used, the most promising by
// its own estimate first; there may be none. All have the same bits in each run.
func (p *ConvPlan) Algorithms() []int { return p.made.algorithms() }

// Run queues the convolution by one of the algorithms. It can be captured. An algorithm
// that refuses has queued nothing.
func (p *ConvPlan) Run(s Stream, algorithm int, o ConvOperands) error {
	if err := p.made.run(p.dnn, s, algorithm, o); err != nil {
		return fmt.Errorf("%s by algorithm %d of cuDNN: %w", p.convolution.Kind(p.dnn.options.TF32), algorithm, err)
	}
	return nil
}

// Destroy frees the plan. A graph that captured it may still be launched.
func (p *ConvPlan) Destroy() { p.made.release() }
