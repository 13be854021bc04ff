package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ringtrain/ringtrain/collective"
)

// Limits of the two formats, checked before anything is allocated or encoded.
const (
	maxName      = 96      // bytes of the name of a member or node
	maxLocalSize = 1024    // workers of a machine
	maxNodes     = 1 << 16 // machines
	maxMembers   = 8192    // of a View
	minMember    = 24      // bytes of the shortest member
	maxAddrs     = 64      // of one member
	maxSame      = 8       // settings that must be equal
	maxMessage   = 4 << 20 // bytes
)

var errWire = errors.New("malformed")

// A writer appends to a buffer: varints, length-prefixed strings, fixed words.
type writer struct{ b []byte }

func (w *writer) byte(x byte)   { w.b = append(w.b, x) }
func (w *writer) num(x uint64)  { w.b = binary.AppendUvarint(w.b, x) }
func (w *writer) word(x uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, x) }
func (w *writer) text(s string) { w.num(uint64(len(s))); w.b = append(w.b, s...) }
func (w *writer) peer(p peer)   { w.text(p.Name); w.word(p.Nonce) }

func (w *writer) ballot(b ballot) { w.num(b.Round); w.peer(b.By) }

func (w *writer) member(m collective.Member) {
	w.peer(peerOf(m))
	w.text(m.Node)
	w.num(uint64(m.Local))
	w.num(uint64(m.LocalSize))
	w.word(uint64(m.Host))
	w.byte(byte(m.Role))
	w.num(uint64(len(m.Addrs)))
	for _, a := range m.Addrs {
		w.addr(a)
	}
}

func (w *writer) addr(a netip.AddrPort) {
	ip := a.Addr().Unmap().AsSlice()
	w.byte(byte(len(ip)))
	w.b = append(w.b, ip...)
	w.b = binary.LittleEndian.AppendUint16(w.b, a.Port())
}

// A reader decodes a buffer. After the first error it returns zeros and keeps the
// error.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", errWire, what)
	}
	r.b = nil
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.fail("cut short")
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) byte() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) word() uint64 {
	if p := r.take(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

// num reads a varint of at most most.
func (r *reader) num(most uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 || x > most {
		r.fail("number too large or cut short")
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *reader) text() string { return string(r.take(int(r.num(maxName)))) }

func (r *reader) peer() peer {
	p := peer{Name: r.text(), Nonce: r.word()}
	if r.err == nil && (p.Name == "") != (p.Nonce == 0) {
		r.fail("name without nonce or nonce without name")
	}
	return p
}

func (r *reader) ballot() ballot {
	return ballot{Round: r.num(1<<63 - 1), By: r.peer()}
}

func (r *reader) member() collective.Member {
	p := r.peer()
	m := collective.Member{Name: p.Name, Nonce: p.Nonce, Node: r.text()}
	m.Local, m.LocalSize = int(r.num(maxLocalSize)), int(r.num(maxLocalSize))
	m.Host, m.Role = collective.HostID(r.word()), collective.Role(r.byte())
	switch {
	case r.err != nil:
	case m.Name == "" || m.Node == "":
		r.fail("member without a name")
	case m.Local >= m.LocalSize:
		r.fail("worker beyond the size of its node")
	case m.Role > collective.Watcher:
		r.fail("unknown role")
	}
	n := int(r.num(maxAddrs))
	for range min(n, len(r.b)/7) { // the shortest address has 7 bytes
		m.Addrs = append(m.Addrs, r.addr())
	}
	if len(m.Addrs) < n {
		r.fail("addresses cut short")
	}
	return m
}

func (r *reader) addr() netip.AddrPort {
	size := int(r.byte())
	if size != 4 && size != 16 {
		r.fail("address neither IPv4 nor IPv6")
		return netip.AddrPort{}
	}
	ip, ok := netip.AddrFromSlice(r.take(size))
	port := r.take(2)
	if !ok || port == nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ip.Unmap(), binary.LittleEndian.Uint16(port))
}

// done returns the first error. Bytes left over are an error.
func (r *reader) done() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("bytes left over")
	}
	return r.err
}
