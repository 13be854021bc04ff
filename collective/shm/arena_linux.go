package shm

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arenas are pieces of this process's memory that the ranks of its host read
// and write in place; see Options. They outlive Transports. The zero value is
// empty and ready to use.
type Arenas struct {
	mu     sync.Mutex
	list   atomic.Pointer[[]arena]
	closed bool // guarded by mu
}

// An arena never moves. Its file has all its pages until a part of it is taken
// back.
type arena struct {
	fd    int
	mem   []byte
	given bool // another process has its descriptor
	taken bool // a part of it was taken back, so it is not shared until it is renewed
}

// Alloc returns a page-aligned piece of the given number of bytes, all zero. It
// stays mapped until the process ends. Too little memory is an error.
func (a *Arenas) Alloc(bytes int) ([]byte, error) {
	if bytes == 0 {
		return []byte{}, nil
	}
	size := (bytes + pageBytes - 1) / pageBytes * pageBytes
	fd, err := create(size, reserve)
	if err != nil {
		return nil, err
	}
	mem, err := attach(fd, size)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed { // no other process can ask for it
		_ = unix.Close(fd)
		return mem[:bytes:bytes], nil
	}
	var all []arena
	if old := a.list.Load(); old != nil {
		all = append(all, *old...)
	}
	all = append(all, arena{fd: fd, mem: mem})
	a.list.Store(&all)
	return mem[:bytes:bytes], nil
}

// Renew replaces the memory that other processes were given with new memory of
// the same contents, at the same addresses. Call it between two Views, while
// nobody uses the pieces. A rank of the previous View may have been stopped and
// not know of the next View, and may still write into the memory it was given.
func (a *Arenas) Renew() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.list.Load()
	if old == nil {
		return nil
	}
	all := append([]arena(nil), *old...)
	defer a.list.Store(&all)
	for i := range all {
		if !all[i].given {
			all[i].taken = false
			continue
		}
		if err := all[i].renew(); err != nil {
			return fmt.Errorf("shm: memory that a rank of the last view may still write to cannot be replaced: %w", err)
		}
	}
	return nil
}

func (one *arena) renew() error {
	size := len(one.mem)
	fd, err := create(size, reserve)
	if err != nil {
		return err
	}
	fresh, err := attach(fd, size)
	if err == nil {
		copy(fresh, one.mem)
		// The same address, so pointers into it stay valid.
		_, err = unix.MmapPtr(fd, 0, unsafe.Pointer(unsafe.SliceData(one.mem)), uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED|unix.MAP_POPULATE)
		_ = unix.Munmap(fresh)
	}
	if err != nil {
		_ = unix.Close(fd)
		return err
	}
	_ = unix.Close(one.fd)
	one.fd, one.given, one.taken = fd, false, false
	return nil
}

// takeBack makes a part of a piece private again, with its contents. Later
// writes of other processes no longer reach it. Until it is renewed, calls do
// not find the piece in place, and no other process gets it. Other goroutines
// may use the memory meanwhile, without losing a write.
func (a *Arenas) takeBack(id uint64, offset, size int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.list.Load()
	if old == nil {
		return unix.EBADF // Close has been called; it must wait for calls to end
	}
	all := append([]arena(nil), *old...)
	one := &all[id-1]
	one.taken = true
	a.list.Store(&all)
	if !one.given {
		return nil
	}
	return one.takeBack(offset, size)
}

// takeBack replaces the shared mapping by a private mapping of the same file,
// and then makes the kernel copy every page by a write that changes nothing.
// The kernel loses no concurrent write of this process, which a copy of our own
// could not promise. The file's pages are freed step by step, so the copy needs
// no memory beyond one step.
func (one *arena) takeBack(offset, size int) error {
	page := unix.Getpagesize()
	lo, hi := offset/page*page, (offset+size+page-1)/page*page
	// Map elsewhere first, so that a failure leaves the old mapping in place.
	fresh, err := unix.MmapPtr(one.fd, int64(lo), nil, uintptr(hi-lo), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	place := unsafe.Pointer(&one.mem[lo])
	if _, err := unix.MremapPtr(fresh, uintptr(hi-lo), place, uintptr(hi-lo), unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
		_ = unix.MunmapPtr(fresh, uintptr(hi-lo))
		return fmt.Errorf("mremap: %w", err)
	}
	for at := lo; at < hi; at += reserveStep {
		end := min(at+reserveStep, hi)
		for p := at; p < end; p += page {
			atomic.AddUint32((*uint32)(unsafe.Pointer(&one.mem[p])), 0)
		}
		_ = unix.Fallocate(one.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(at), int64(end-at))
	}
	return nil
}

// Close closes the files of the pieces, so that no other process can get them.
// The memory stays mapped, because callers may still hold it.
func (a *Arenas) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if all := a.list.Swap(nil); all != nil {
		for _, one := range *all {
			_ = unix.Close(one.fd)
		}
	}
	return nil
}

// find returns the number of the piece that holds b, from 1, and the offset of
// b in it. 0 means that no piece does.
func (a *Arenas) find(b []byte) (id, offset uint64) {
	if a == nil || len(b) == 0 {
		return 0, 0
	}
	all := a.list.Load()
	if all == nil {
		return 0, 0
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for i := range *all {
		mem := (*all)[i].mem // copy no more than this: a door may change given meanwhile
		from := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
		if at >= from && at+uintptr(len(b)) <= from+uintptr(len(mem)) && !(*all)[i].taken {
			return uint64(i + 1), uint64(at - from)
		}
	}
	return 0, 0
}

// duplicate returns a new descriptor of a piece's file, which the caller owns,
// and the file's size.
func (a *Arenas) duplicate(id uint64) (fd, size int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.list.Load()
	if all == nil || id == 0 || id > uint64(len(*all)) {
		return -1, 0, unix.ENOENT
	}
	one := &(*all)[id-1]
	if one.taken {
		return -1, 0, unix.EACCES
	}
	fd, err = unix.FcntlInt(uintptr(one.fd), unix.F_DUPFD_CLOEXEC, 0)
	one.given = one.given || err == nil
	return fd, len(one.mem), err
}
