package tcp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// iovecs are pieces of memory to read or write in order, as much at a time as the
// socket allows.
type iovecs struct {
	list  []unix.Iovec
	next  int // index of the first that is not done
	left  int // bytes that are not done
	total int // bytes
}

const (
	maxIovecs = 1024     // UIO_MAXIOV, the most that readv and writev accept
	rawBytes  = 32 << 10 // moving this many bytes takes a few microseconds
)

// set replaces the pieces with head, which may be nil, and the bytes [lo, hi) of the
// concatenated parts.
func (v *iovecs) set(head []byte, parts [][]byte, lo, hi int) {
	v.list = v.list[:0]
	v.add(head)
	for _, p := range parts {
		if a, b := max(lo, 0), min(hi, len(p)); a < b {
			v.add(p[a:b])
		}
		lo, hi = lo-len(p), hi-len(p)
	}
	v.next, v.left = 0, 0
	for _, piece := range v.list {
		v.left += int(piece.Len)
	}
	v.total = v.left
}

func (v *iovecs) add(p []byte) {
	if len(p) > 0 {
		v.list = append(v.list, unix.Iovec{Base: unsafe.SliceData(p)})
		v.list[len(v.list)-1].SetLen(len(p))
	}
}

// drop forgets the pieces, so that the garbage collector can free their memory.
func (v *iovecs) drop() { clear(v.list) }

// move makes one system call, readv or writev, and returns the number of bytes that it
// moved. The error is EAGAIN if the socket has no data or no room.
func (v *iovecs) move(call uintptr, fd int) (int, error) {
	raw := v.left <= rawBytes
	for {
		first, n := &v.list[v.next], uintptr(min(len(v.list)-v.next, maxIovecs))
		var r uintptr
		var errno unix.Errno
		if raw {
			r, _, errno = unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(first)), n)
		} else { // lets the runtime run other goroutines meanwhile
			r, _, errno = unix.Syscall(call, uintptr(fd), uintptr(unsafe.Pointer(first)), n)
		}
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return 0, errno
		}
		v.advance(int(r))
		return int(r), nil
	}
}

// advance marks n bytes as done.
func (v *iovecs) advance(n int) {
	v.left -= n
	for n > 0 {
		p := &v.list[v.next]
		if uint64(n) < uint64(p.Len) {
			p.Base = (*byte)(unsafe.Add(unsafe.Pointer(p.Base), n))
			p.SetLen(int(p.Len) - n)
			return
		}
		n -= int(p.Len)
		v.next++
	}
}
