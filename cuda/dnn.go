package cuda

import (
	"fmt"
	"sync"
)

// The supported versions of cuDNN, in its own numbering. Our declarations were compared with
// headers from 8.5 to 9.28. Version 10 may differ.
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
	loaded.Lock()
	driver := loaded.version
	loaded.Unlock()
	library, err := CuDNN.Open(func(s *Shared) error {
		if err := bindDNN(s); err != nil {
			return err
		}
		version, cuda := describeDNN()
		if why := unfitDNN(version, cuda, driver); why != "" {
			closeDNNParts()
			return fmt.Errorf("%s is cuDNN %s, %s", s.Path, dnnVersionText(version), why)
		}
		dnn.version = version
		return nil
	})
	dnn.library = library
	return err
}

// unfitDNN says why a cuDNN built for a version of CUDA cannot be used with a driver, and
// returns "" if it can.
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

// DNNVersion returns the version of cuDNN, such as "9.1.0". The error wraps ErrUnavailable
// and says in one line why cuDNN cannot be used. It also wraps ErrNotInstalled if this
// machine has no cuDNN.
func DNNVersion() (string, error) {
	if err := openDNN(); err != nil {
		return "", err
	}
	dnn.Lock()
	defer dnn.Unlock()
	return dnnVersionText(dnn.version), nil
}

// dnnVersionText returns 8.9.7 for 8907 and 9.1.0 for 90100. Before version 9 a major
// version counted 1000, since then 10000.
func dnnVersionText(v int) string {
	if v < 10000 {
		return fmt.Sprintf("%d.%d.%d", v/1000, v/100%10, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
}

// DNNOptions say how convolutions are computed.
type DNNOptions struct {
	// TF32 allows tensor cores, which round factors to 10 bits of fraction, and Winograd's
	// algorithm. Without it only sums are rounded.
	TF32 bool
	// Workspace is the number of bytes of device memory for cuDNN; 0 means DNNWorkspace.
	// Algorithms that need more are not used.
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

// DNNWorkspace is the default size of cuDNN's workspace, in bytes of device memory.
const DNNWorkspace = 64 << 20

// NewDNN starts cuDNN. All its convolutions run on one stream, because they share a
// workspace. Call it outside of captures. The error is that of DNNVersion, or says what
// failed.
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
		_ = d.Free(n.workspace) // err is the cause
		return nil, fmt.Errorf("cuDNN (%s) does not start: %w; install one that is built for the driver's CUDA, or set %s to another file", dnn.library.Path, err, CuDNN.Variable)
	}
	return n, nil
}

// Destroy frees the workspace. Call it when no convolution is running, and no graph with
// one will be launched again.
func (n *DNN) Destroy() error {
	err := dnnDestroy(n.handle)
	if freed := n.device.Free(n.workspace); err == nil {
		err = freed
	}
	return err
}

// A ConvPass says which of a convolution's three operands is computed from the others.
type ConvPass int

// The passes.
const (
	// ConvForward sets Y to the convolution of X with W, plus Bias.
	ConvForward ConvPass = iota
	// ConvWeights adds the gradient of the filters to W. Y is the gradient of the output.
	ConvWeights
	// ConvInput sets X to the gradient of the input. Y is the gradient of the output.
	ConvInput
)

// String returns the name of the pass.
func (p ConvPass) String() string { return [...]string{"forward", "weights", "input"}[p] }

// A Convolution is one pass of a convolution of float32 images with square filters, as
// nn.Conv defines it. X is (Rows, Channels, Height, Width), W is (Filters, Channels, Size,
// Size), and Y is (Rows, Filters, output height, output width).
type Convolution struct {
	Pass                           ConvPass
	Rows, Channels, Height, Width  int
	Filters, Size, Stride, Padding int
}

func (c Convolution) outHeight() int { return (c.Height+2*c.Padding-c.Size)/c.Stride + 1 }
func (c Convolution) outWidth() int  { return (c.Width+2*c.Padding-c.Size)/c.Stride + 1 }

// MultiplyAdds returns the number of multiply-adds of a pass, including those with padding.
func (c Convolution) MultiplyAdds() int {
	return c.Rows * c.Filters * c.outHeight() * c.outWidth() * c.Channels * c.Size * c.Size
}

// Kind names the convolution in logs and choices.
func (c Convolution) Kind(tf32 bool) string {
	number := "f32"
	if tf32 {
		number = "tf32"
	}
	return fmt.Sprintf("conv2d %v %dx%dx%dx%d by %dx%dx%d stride %d padding %d %s",
		c.Pass, c.Rows, c.Channels, c.Height, c.Width, c.Filters, c.Size, c.Size, c.Stride, c.Padding, number)
}

// ConvOperands holds the addresses of a convolution's operands.
type ConvOperands struct {
	X, W, Y Ptr
	Bias    Ptr // Filters elements, only for ConvForward; 0 for none
}

const convAlignment = 16

// Aligned reports whether all operands are at multiples of 16 bytes, as cuDNN's kernels
// require.
func (o ConvOperands) Aligned() bool { return (o.X|o.W|o.Y|o.Bias)%convAlignment == 0 }

// A ConvPlan is a convolution that is ready to run on any operands.
type ConvPlan struct {
	dnn         *DNN
	convolution Convolution
	made        convolved
}

// Plan asks cuDNN for algorithms. It may be called in a capture. An error means that cuDNN
// does not support the convolution; the device is unharmed.
func (n *DNN) Plan(c Convolution) (*ConvPlan, error) {
	if c.Rows < 1 || c.Filters < 1 || c.outHeight() < 1 || c.outWidth() < 1 {
		return nil, fmt.Errorf("cuda: convolution %s: sizes must be positive, and the filter must fit", c.Kind(n.options.TF32))
	}
	made, err := convolve(n, c)
	if err != nil {
		made.release()
		return nil, fmt.Errorf("%s: %w", c.Kind(n.options.TF32), err)
	}
	return &ConvPlan{n, c, made}, nil
}

// Algorithms returns cuDNN's numbers of the algorithms that may be used, the fastest by its
// own estimate first. There may be none. All are deterministic.
func (p *ConvPlan) Algorithms() []int { return p.made.algorithms() }

// Run queues the convolution. It can be captured, but not the first time that an algorithm
// runs, because cuDNN then loads its kernels.
func (p *ConvPlan) Run(s Stream, algorithm int, o ConvOperands) error {
	if err := p.made.run(p.dnn, s, algorithm, o); err != nil {
		return fmt.Errorf("%s by algorithm %d of cuDNN: %w", p.convolution.Kind(p.dnn.options.TF32), algorithm, err)
	}
	return nil
}

// Destroy frees the plan. Graphs that captured it remain valid.
func (p *ConvPlan) Destroy() { p.made.release() }
