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

// A probe is a random word in the memory of this process. Another rank that reads
// the same word at the probe's address, in the process with this one's number, can
// read this process's memory.
type probe struct{ word uint64 }

func newProbe() *probe {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return &probe{binary.LittleEndian.Uint64(b[:])}
}

// The words of a rank's proof after its nonce; see prove.
const (
	proofPID = 8 * (1 + iota)
	proofAddr
	proofWord
)

// offer publishes the probe of this process. The caller keeps the probe alive.
func (r *region) offer(index int, p *probe) {
	at := r.proof(index)
	atomic.StoreUint64(r.word(at+proofPID), uint64(os.Getpid()))
	atomic.StoreUint64(r.word(at+proofAddr), uint64(uintptr(unsafe.Pointer(p))))
	atomic.StoreUint64(r.word(at+proofWord), p.word)
}

// pid returns the number of a rank's process in the PID namespace of that
// process. tryRead finds out whether the number is the same in this namespace.
func (r *region) pid(index int) int {
	return int(atomic.LoadUint64(r.word(r.proof(index) + proofPID)))
}

// tryRead returns why this process cannot read a rank's memory, or nil.
func (r *region) tryRead(index int) error {
	at := r.proof(index)
	var got [8]byte
	var x remoteReader
	if err := x.read(r.pid(index), uintptr(atomic.LoadUint64(r.word(at+proofAddr))), got[:]); err != nil {
		return err
	}
	if binary.NativeEndian.Uint64(got[:]) != atomic.LoadUint64(r.word(at+proofWord)) {
		return fmt.Errorf("process %d is a different process here; the ranks may be in different PID namespaces", r.pid(index))
	}
	return nil
}

// A remoteReader reads the memory of other processes. It holds the arguments of
// the system call, so that a read allocates nothing.
type remoteReader struct {
	local  [1]unix.Iovec
	remote [1]unix.RemoteIovec
}

// read fills b from an address in another process.
func (x *remoteReader) read(pid int, addr uintptr, b []byte) error {
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
			return fmt.Errorf("process_vm_readv: read none of %d bytes", len(b))
		}
		b, addr = b[n:], addr+uintptr(n)
	}
	return nil
}
