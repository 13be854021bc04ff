package cuda

import (
	"fmt"
	"math"
	"unsafe"
)

// A Module is a compiled image on the device.
type Module struct{ handle uintptr }

// Load loads an image: what Compile returns, or any cubin, fatbin or PTX.
func (d *Device) Load(image []byte) (Module, error) {
	h, err := moduleLoad(image)
	return Module{h}, err
}

// Unload frees the module. Its functions are not used afterwards.
func (m Module) Unload() error { return moduleUnload(m.handle) }

// Function is a kernel of the module, by the name it has in the source if that
// says extern "C".
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

// Name is the kernel's name.
func (f Function) Name() string { return f.name }

// Usage is what a kernel needs.
type Usage struct {
	MaxThreads int // that a block may have
	Registers  int // for each thread
	Shared     int // bytes of static shared memory
	Local      int // bytes of each thread, of which spills are a part
}

// Usage tells what the kernel needs.
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
	attributeMaxThreads    = 0
	attributeShared        = 1
	attributeLocal         = 3
	attributeRegisters     = 4
	attributeDynamicShared = 8
)

// AllowShared lets the kernel be launched with that many bytes of dynamic shared
// memory; without it there are 48 KiB at most, static memory included.
func (f Function) AllowShared(bytes int) error {
	if err := functionSetAttribute(f.handle, attributeDynamicShared, bytes); err != nil {
		return fmt.Errorf("kernel %s: %d bytes of shared memory: %w", f.name, bytes, err)
	}
	return nil
}

// Dim is the size of a grid or a block; 0 means 1.
type Dim struct{ X, Y, Z uint32 }

// An Arg is an argument of a kernel: a pointer, a number of up to 8 bytes, or a
// struct. The kernel reads as many bytes as its parameter has.
type Arg struct {
	word uint64
	more []uint64 // of a struct: what follows
}

// Arg is the address as an argument.
func (p Ptr) Arg() Arg { return Arg{word: uint64(p)} }

// Uint32 is v as an argument.
func Uint32(v uint32) Arg { return Arg{word: uint64(v)} }

// Int32 is v as an argument.
func Int32(v int32) Arg { return Arg{word: uint64(uint32(v))} }

// Uint64 is v as an argument.
func Uint64(v uint64) Arg { return Arg{word: v} }

// Int64 is v as an argument.
func Int64(v int64) Arg { return Arg{word: uint64(v)} }

// Float32 is v as an argument.
func Float32(v float32) Arg { return Arg{word: uint64(math.Float32bits(v))} }

// Struct is a copy of v as an argument passed by value. T is laid out as the
// kernel's struct, is not empty, and has no pointers of Go.
func Struct[T any](v T) Arg {
	words := make([]uint64, (unsafe.Sizeof(v)+7)/8)
	*(*T)(unsafe.Pointer(&words[0])) = v
	return Arg{words[0], words[1:]}
}

// maxArgs is how many arguments a kernel may have here.
const maxArgs = 32

// A command is one launch, laid out as rt_command in driver_gpu.h.
type command struct {
	function    uintptr
	grid, block Dim
	shared      uint32
	args        uint32 // how many
}

// A Batch is a list of launches that go to the driver in one call. The zero
// value is empty.
type Batch struct {
	commands []command
	widths   []uint32 // of each argument of each command, in words
	words    []uint64 // the arguments, one after the other
	names    []string
}

// Add adds a launch. shared is in bytes.
func (b *Batch) Add(f Function, grid, block Dim, shared int, args ...Arg) {
	b.commands = append(b.commands, command{f.handle, grid.filled(), block.filled(), uint32(shared), uint32(len(args))})
	for _, a := range args {
		b.widths = append(b.widths, uint32(1+len(a.more)))
		b.words = append(append(b.words, a.word), a.more...)
	}
	b.names = append(b.names, f.name)
}

// filled has 1 in place of 0.
func (d Dim) filled() Dim { return Dim{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }

// Len is how many launches the batch has.
func (b *Batch) Len() int { return len(b.commands) }

// Reset makes the batch empty.
func (b *Batch) Reset() {
	b.commands, b.widths, b.words, b.names = b.commands[:0], b.widths[:0], b.words[:0], b.names[:0]
}

// Launch queues the batch on s, in order. It stays as it is, to be launched again.
// An error names the kernel that could not be launched; those before it are queued.
func (b *Batch) Launch(s Stream) error {
	if len(b.commands) == 0 {
		return nil
	}
	for i, c := range b.commands {
		if c.args > maxArgs {
			return fmt.Errorf("kernel %s: %d arguments, more than %d", b.names[i], c.args, maxArgs)
		}
	}
	at, err := launch(s.handle, b)
	if err != nil {
		c := b.commands[at]
		return fmt.Errorf("kernel %s, grid %v of blocks %v, %d bytes of shared memory: %w", b.names[at], c.grid, c.block, c.shared, err)
	}
	return nil
}
