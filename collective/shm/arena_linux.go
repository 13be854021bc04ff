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

// An arena is one piece. It never moves. All pages of its file are allocated until
// a part of it is reclaimed.
type arena struct {
	fd        int
	mem       []byte
	shared    bool // another process has its descriptor
	reclaimed bool // a part of it was reclaimed, so it must be renewed before it is shared again
}

// Alloc returns a page-aligned piece of the given number of bytes, all zero. It
// stays mapped until the process ends. Alloc fails if too little memory is
// available.
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
	if a.closed { // no other process will get it
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

// Renew replaces the memory that other processes have mapped by new memory with
// the same contents, at the same addresses. Call it between two Views, while
// no rank uses the pieces. A rank of the previous View may have been stopped, so
// that it does not know of the next View and still writes into the old memory.
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
		if !all[i].shared {
			all[i].reclaimed = false
			continue
		}
		if err := all[i].renew(); err != nil {
			return fmt.Errorf("shm: replacing memory that a rank of the last view may still write to: %w", err)
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
		// At the same address, so that pointers into it stay valid.
		_, err = unix.MmapPtr(fd, 0, unsafe.Pointer(unsafe.SliceData(one.mem)), uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED|unix.MAP_POPULATE)
		_ = unix.Munmap(fresh)
	}
	if err != nil {
		_ = unix.Close(fd)
		return err
	}
	_ = unix.Close(one.fd)
	one.fd, one.shared, one.reclaimed = fd, false, false
	return nil
}

// reclaim makes a part of a piece private to this process and keeps its contents.
// When it returns, writes by other processes no longer reach the part. Until the
// piece is renewed, find does not find it and no other process gets it. Other
// goroutines may write to the memory meanwhile; no write is lost.
func (a *Arenas) reclaim(id uint64, offset, size int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.list.Load()
	if old == nil {
		return unix.EBADF // Close has been called too early: it must wait until calls have ended
	}
	all := append([]arena(nil), *old...)
	one := &all[id-1]
	one.reclaimed = true
	a.list.Store(&all)
	if !one.shared {
		return nil
	}
	return one.reclaim(offset, size)
}

// reclaim replaces the shared mapping by a private mapping of the same file. Then
// a write that changes nothing makes the kernel copy each page. Unlike a copy of
// our own, the kernel's loses no concurrent write of this process. The pages of
// the file are freed step by step, so the copies need only as much more memory as
// one step.
func (one *arena) reclaim(offset, size int) error {
	page := unix.Getpagesize()
	lo, hi := offset/page*page, (offset+size+page-1)/page*page
	// Map it elsewhere first, so that a failure leaves the old mapping in place.
	fresh, err := unix.MmapPtr(one.fd, int64(lo), nil, uintptr(hi-lo), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	old := unsafe.Pointer(&one.mem[lo])
	if _, err := unix.MremapPtr(fresh, uintptr(hi-lo), old, uintptr(hi-lo), unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
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
		mem := (*all)[i].mem // not the whole arena: duplicate may be writing to shared
		from := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
		if at >= from && at+uintptr(len(b)) <= from+uintptr(len(mem)) && !(*all)[i].reclaimed {
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
	if one.reclaimed {
		return -1, 0, unix.EACCES
	}
	fd, err = unix.FcntlInt(uintptr(one.fd), unix.F_DUPFD_CLOEXEC, 0)
	one.shared = one.shared || err == nil
	return fd, len(one.mem), err
}
