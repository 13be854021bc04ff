package shm

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arenas are pieces of memory of this process that the ranks of its host read
// and write in place, see Options. They outlive Transports. The zero value has
// none.
type Arenas struct {
	mu     sync.Mutex
	list   atomic.Pointer[[]arena]
	closed bool // guarded by mu
}

// An arena never moves, and its file has all its pages.
type arena struct {
	fd  int
	mem []byte
}

// Alloc makes a piece of so many bytes, all zero, which begins at a page. It is
// there until the process ends. No room is an error.
func (a *Arenas) Alloc(bytes int) ([]byte, error) {
	if bytes == 0 {
		return []byte{}, nil
	}
	size := (bytes + pageBytes - 1) / pageBytes * pageBytes
	if err := fits(size); err != nil {
		return nil, err
	}
	fd, err := create(size, fallocate)
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
	if a.closed { // nobody will ask for it
		_ = unix.Close(fd)
		return mem[:bytes:bytes], nil
	}
	var all []arena
	if old := a.list.Load(); old != nil {
		all = append(all, *old...)
	}
	all = append(all, arena{fd, mem})
	a.list.Store(&all)
	return mem[:bytes:bytes], nil
}

// Close forgets the pieces, so that no other process gets at them any more. The
// memory stays where it is, because somebody may hold it.
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

// find is the number of the piece that b lies in, from 1, and where; 0 is none.
func (a *Arenas) find(b []byte) (id, offset uint64) {
	if a == nil || len(b) == 0 {
		return 0, 0
	}
	all := a.list.Load()
	if all == nil {
		return 0, 0
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for i, one := range *all {
		from := uintptr(unsafe.Pointer(unsafe.SliceData(one.mem)))
		if at >= from && at+uintptr(len(b)) <= from+uintptr(len(one.mem)) {
			return uint64(i + 1), uint64(at - from)
		}
	}
	return 0, 0
}

// duplicate is a descriptor of a piece's file, which is the caller's, and its
// size.
func (a *Arenas) duplicate(id uint64) (fd, size int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.list.Load()
	if all == nil || id == 0 || id > uint64(len(*all)) {
		return -1, 0, unix.ENOENT
	}
	one := (*all)[id-1]
	fd, err = unix.FcntlInt(uintptr(one.fd), unix.F_DUPFD_CLOEXEC, 0)
	return fd, len(one.mem), err
}
