package cuda

import (
	"fmt"
	"math"
	"unsafe"
)

// A Module is a compiled image on the device.
type Module struct{ handle uintptr }

// Load loads an image: a result of Compile, or any cubin, fatbin or PTX.
func (d *Device) Load(image []byte) (Module, error) {
	h, err := moduleLoad(image)
	return Module{h}, err
}

// Unload frees the module. Its functions must not be used afterwards.
func (m Module) Unload() error { return moduleUnload(m.handle) }

// Function returns a kernel of the module. The name is that in the source if the kernel is
// declared extern "C".
func (m Module) Function(name string) (Function, error) {
	h, err := moduleFunction(m.handle, name)
	if err != nil {
		return Function{}, fmt.Errorf("kernel %s: %w", name, err)
	}
	return Function{h, name}, nil
}

// A Function is a kernel.
type Function struct {
	handle uintptr
	name   string
}

// Name returns the kernel's name.
func (f Function) Name() string { return f.name }

// Usage is the resources that a kernel needs.
type Usage struct {
	MaxThreads int // per block, at most
	Registers  int // per thread
	Shared     int // bytes of static shared memory
	Local      int // bytes of local memory per thread, including spills
}

// Usage returns the resources that the kernel needs.
func (f Function) Usage() (Usage, error) {
	var u Usage
	for _, field := range []struct {
		to        *int
		attribute int
	}{
		{&u.MaxThreads, attributeMaxThreads},
		{&u.Registers, attributeRegisters},
		{&u.Shared, attributeShared},
		{&u.Local, attributeLocal},
	} {
		var err error
		if *field.to, err = functionAttribute(f.handle, field.attribute); err != nil {
			return u, fmt.Errorf("kernel %s: %w", f.name, err)
		}
	}
	return u, nil
}

// The driver's CUfunction_attribute.
const (
	attributeMaxThreads = 0
	attributeShared     = 1
	attributeLocal      = 3
	attributeRegisters  = 4
)

// Dim is the size of a grid or a block; 0 means 1.
type Dim struct{ X, Y, Z uint32 }

// An Arg is an argument of a kernel: a pointer, a number of up to 8 bytes, or a
// struct. The kernel reads as many bytes as its parameter has.
type Arg struct {
	word uint64
	more []uint64 // the other words of a struct
}

// Arg returns the address as an argument.
func (p Ptr) Arg() Arg { return Arg{word: uint64(p)} }

// Uint32 returns v as an argument.
func Uint32(v uint32) Arg { return Arg{word: uint64(v)} }

// Int32 returns v as an argument.
func Int32(v int32) Arg { return Arg{word: uint64(uint32(v))} }

// Uint64 returns v as an argument.
func Uint64(v uint64) Arg { return Arg{word: v} }

// Int64 returns v as an argument.
func Int64(v int64) Arg { return Arg{word: uint64(v)} }

// Float32 returns v as an argument.
func Float32(v float32) Arg { return Arg{word: uint64(math.Float32bits(v))} }

// Struct returns a copy of v as an argument passed by value. T must have the layout of the
// kernel's struct. It must not be empty or contain Go pointers.
func Struct[T any](v T) Arg {
	words := make([]uint64, (unsafe.Sizeof(v)+7)/8)
	*(*T)(unsafe.Pointer(&words[0])) = v
	return Arg{words[0], words[1:]}
}

// maxArgs is the largest number of arguments that a launch may have.
const maxArgs = 32

// A command is one launch, laid out as rt_command in driver_gpu.h.
type command struct {
	function    uintptr
	grid, block Dim
	shared      uint32
	args        uint32 // number of arguments
}

// A Batch is a list of launches that go to the driver in one call. The zero
// value is empty.
type Batch struct {
	commands []command
	widths   []uint32 // of each argument of each command, in words
	words    []uint64 // all arguments, concatenated
	names    []string
}

// Add appends a launch. shared is the number of bytes of dynamic shared memory, at most 48 KiB
// together with the kernel's static shared memory.
func (b *Batch) Add(f Function, grid, block Dim, shared int, args ...Arg) {
	b.commands = append(b.commands, command{f.handle, grid.filled(), block.filled(), uint32(shared), uint32(len(args))})
	for _, a := range args {
		b.widths = append(b.widths, uint32(1+len(a.more)))
		b.words = append(append(b.words, a.word), a.more...)
	}
	b.names = append(b.names, f.name)
}

// filled replaces 0 by 1.
func (d Dim) filled() Dim { return Dim{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }

// Len returns the number of launches.
func (b *Batch) Len() int { return len(b.commands) }

// Reset makes the batch empty.
func (b *Batch) Reset() {
	b.commands, b.widths, b.words, b.names = b.commands[:0], b.widths[:0], b.words[:0], b.names[:0]
}

// Launch queues the batch on s, in order. The batch is unchanged and can be launched
// again. An error names the kernel that could not be launched. Kernels before it are queued.
func (b *Batch) Launch(s Stream) error {
	if len(b.commands) == 0 {
		return nil
	}
	for i, c := range b.commands {
		if c.args > maxArgs {
			return fmt.Errorf("kernel %s has %d arguments, more than the limit of %d", b.names[i], c.args, maxArgs)
		}
	}
	at, err := launch(s.handle, b)
	if err != nil {
		c := b.commands[at]
		return fmt.Errorf("kernel %s, grid %v of blocks %v, %d bytes of shared memory: %w", b.names[at], c.grid, c.block, c.shared, err)
	}
	return nil
}
