package shm

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A probe is a word that others try to read where it is said to be: in the
// memory of the process that they take this one for.
type probe struct{ word uint64 }

func newProbe() *probe {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return &probe{binary.LittleEndian.Uint64(b[:])}
}

// The words of a rank's proof, after that of prove.
const (
	proofPID = 8 * (1 + iota)
	proofAddr
	proofWord
)

// offer says where the probe of this process lies, which stays there.
func (r *region) offer(index int, p *probe) {
	at := r.proof(index)
	atomic.StoreUint64(r.word(at+proofPID), uint64(os.Getpid()))
	atomic.StoreUint64(r.word(at+proofAddr), uint64(uintptr(unsafe.Pointer(p))))
	atomic.StoreUint64(r.word(at+proofWord), p.word)
}

// pid is the process of a rank, as it knows itself: tryRead tells whether that
// is what it is called here.
func (r *region) pid(index int) int {
	return int(atomic.LoadUint64(r.word(r.proof(index) + proofPID)))
}

// tryRead says why a rank's memory cannot be read, or nil.
func (r *region) tryRead(index int) error {
	at := r.proof(index)
	var got [8]byte
	var x reading
	if err := x.read(r.pid(index), uintptr(atomic.LoadUint64(r.word(at+proofAddr))), got[:]); err != nil {
		return err
	}
	if binary.LittleEndian.Uint64(got[:]) != atomic.LoadUint64(r.word(at+proofWord)) {
		return fmt.Errorf("process %d is another one here", r.pid(index))
	}
	return nil
}

// A reading has what the call takes, so that it need not be allocated.
type reading struct {
	local  [1]unix.Iovec
	remote [1]unix.RemoteIovec
}

// read fills b with what lies at an address in another process.
func (x *reading) read(pid int, addr uintptr, b []byte) error {
	for len(b) > 0 {
		x.local[0].Base = unsafe.SliceData(b)
		x.local[0].SetLen(len(b))
		x.remote[0] = unix.RemoteIovec{Base: addr, Len: len(b)}
		n, err := unix.ProcessVMReadv(pid, x.local[:], x.remote[:], 0)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("process_vm_readv: %w", err)
		case n == 0:
			return fmt.Errorf("process_vm_readv: nothing came of %d bytes", len(b))
		}
		b, addr = b[n:], addr+uintptr(n)
	}
	return nil
}
