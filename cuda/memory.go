package cuda

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"
)

// A Ptr is an address in device memory.
type Ptr uintptr

// Alloc returns new device memory with undefined contents, aligned to 256 bytes. It may
// wait for the device, so allocate before you capture.
func (d *Device) Alloc(bytes int) (Ptr, error) {
	p, err := memAlloc(bytes)
	if err != nil {
		return 0, fmt.Errorf("%d bytes on device %d: %w", bytes, d.info.Index, err)
	}
	return p, nil
}

// Free frees what Alloc returned. It waits for the device.
func (d *Device) Free(p Ptr) error { return memFree(p) }

// MemInfo returns the device's free and total memory, in bytes.
func (d *Device) MemInfo() (free, total uint64, err error) { return memInfo() }

// Pinned is host memory that the device can copy from and to by itself. It is outside
// Go's heap, so slices of it must not be used after Free.
type Pinned struct {
	p      unsafe.Pointer
	bytes  int
	device Ptr
}

// AllocPinned returns zeroed pinned memory. If it is mapped, kernels can access it at the
// address that Device returns. That is slow, but needs no copy.
func (d *Device) AllocPinned(bytes int, mapped bool) (*Pinned, error) {
	p, err := hostAlloc(bytes, mapped)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of pinned host memory: %w", bytes, err)
	}
	m := &Pinned{p: p, bytes: bytes}
	clear(m.Bytes())
	if mapped {
		if m.device, err = hostDevice(p); err != nil {
			_ = hostFree(p) // err is the cause
			return nil, err
		}
	}
	return m, nil
}

// Bytes returns the memory as bytes.
func (m *Pinned) Bytes() []byte { return unsafe.Slice((*byte)(m.p), m.bytes) }

// Float32s returns the memory as float32.
func (m *Pinned) Float32s() []float32 { return unsafe.Slice((*float32)(m.p), m.bytes/4) }

// Int32s returns the memory as int32.
func (m *Pinned) Int32s() []int32 { return unsafe.Slice((*int32)(m.p), m.bytes/4) }

// Uint32s returns the memory as uint32. Use sync/atomic to write words that the device may
// read at the same time.
func (m *Pinned) Uint32s() []uint32 { return unsafe.Slice((*uint32)(m.p), m.bytes/4) }

// Device returns the address of mapped memory for kernels, or 0 if it is not mapped.
func (m *Pinned) Device() Ptr { return m.device }

// Free frees the memory. No copy that uses it may be queued.
func (m *Pinned) Free() error {
	p := m.p
	m.p, m.bytes, m.device = nil, 0, 0
	return hostFree(p)
}

// part returns the address at offset, after checking that the copy fits.
func (m *Pinned) part(offset, bytes int) (unsafe.Pointer, error) {
	if offset < 0 || bytes < 0 || bytes > m.bytes-offset {
		return nil, fmt.Errorf("cuda: copy of %d bytes at offset %d of pinned memory, which has %d bytes", bytes, offset, m.bytes)
	}
	return unsafe.Add(m.p, offset), nil
}

// CopyIn queues a copy of bytes bytes from src, at offset, to dst. src must not change
// until the copy is done.
func (s Stream) CopyIn(dst Ptr, src *Pinned, offset, bytes int) error {
	p, err := src.part(offset, bytes)
	if err != nil || bytes == 0 {
		return err
	}
	return copyIn(dst, p, bytes, s.handle)
}

// CopyOut queues a copy of bytes bytes from src to dst, at offset.
func (s Stream) CopyOut(dst *Pinned, offset int, src Ptr, bytes int) error {
	p, err := dst.part(offset, bytes)
	if err != nil || bytes == 0 {
		return err
	}
	return copyOut(p, src, bytes, s.handle)
}

// Copy queues a copy within device memory. src and dst must not overlap.
func (s Stream) Copy(dst, src Ptr, bytes int) error {
	if bytes == 0 {
		return nil
	}
	return copyDevice(dst, src, bytes, s.handle)
}

// Fill queues setting count 32-bit words at p to v. p must be a multiple of 4.
func (s Stream) Fill(p Ptr, v uint32, count int) error {
	if count == 0 {
		return nil
	}
	return fill32(p, v, count, s.handle)
}

// Zero queues setting bytes bytes at p to 0.
func (s Stream) Zero(p Ptr, bytes int) error {
	if bytes == 0 {
		return nil
	}
	return fill8(p, 0, bytes, s.handle)
}

// Write copies src to dst and waits until the copy is done. It cannot be captured. In a
// loop use CopyIn instead.
func (s Stream) Write(dst Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if err := copyIn(dst, unsafe.Pointer(&src[0]), len(src), s.handle); err != nil {
		return err
	}
	defer runtime.KeepAlive(src)        // the device may read it itself
	return s.Sync(context.Background()) // cannot hang: the device copies or fails
}

// Read waits for earlier work on s and copies from src into dst. It cannot be captured.
func (s Stream) Read(dst []byte, src Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	if err := copyOut(unsafe.Pointer(&dst[0]), src, len(dst), s.handle); err != nil {
		return err
	}
	defer runtime.KeepAlive(dst)
	return s.Sync(context.Background())
}

// BytesOf returns a slice of numbers as bytes, for Read and Write. It shares the memory.
func BytesOf[T ~int32 | ~uint32 | ~float32 | ~int64 | ~uint64 | ~float64 | ~uint8 | ~uint16](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}
