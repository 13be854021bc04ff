package shm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A region is memory that the ranks of a host have mapped.
type region struct {
	layout
	mem []byte
}

// seals fix the size of the memory, so that no process can shrink it and make
// another process read beyond its end.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// create makes a file in memory. Either all of its pages are allocated, or it
// returns an error.
func create(size int, reserve func(fd int, size int64) error) (fd int, err error) {
	fd, err = memoryFile(unix.MemfdCreate)
	if err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	if err = reserve(fd, int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("no room for %d KiB of shared memory: %w", size>>10, err)
	}
	return fd, nil
}

// memoryFile makes an empty file in memory that can never be executed.
// vm.memfd_noexec=2 allows no others. Linux before 6.3 does not know the flag.
func memoryFile(create func(name string, flags int) (fd int, err error)) (fd int, err error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err = create("ringtrain", flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		fd, err = create("ringtrain", flags)
	}
	return fd, err
}

func fallocateAt(fd int, at, size int64) error {
	for {
		if err := unix.Fallocate(fd, 0, at, size); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// attach maps a file made by create, possibly in another process.
func attach(fd, size int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || have&seals != seals || st.Size != int64(size) {
		return nil, fmt.Errorf("the shared memory has %d bytes and seals %#x, not %d and %#x", st.Size, have, size, seals)
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	return mem, nil
}

// attachRegion maps the memory of the ranks of a host.
func attachRegion(fd int, l layout) (*region, error) {
	mem, err := attach(fd, l.total)
	if err != nil {
		return nil, err
	}
	return &region{l, mem}, nil
}

func (r *region) close() error { return unix.Munmap(r.mem) }

// bytes returns n bytes of the memory from at on.
func (r *region) bytes(at, n int) []byte { return r.mem[at : at+n : at+n] }

// word returns a word of the memory. at is a multiple of 8.
func (r *region) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&r.mem[at])) }

// prove writes a rank's nonce into the memory. proved checks it: if the nonce is
// there, both processes have mapped the same memory.
func (r *region) prove(index int, nonce uint64) { atomic.StoreUint64(r.word(r.proof(index)), nonce) }

func (r *region) proved(index int, nonce uint64) bool {
	return atomic.LoadUint64(r.word(r.proof(index))) == nonce
}
