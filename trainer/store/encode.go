package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// errMalformed means that bytes do not have the format of what they should be.
var errMalformed = errors.New("malformed")

// AppendValue appends the type, the number of dimensions, the dimensions and the data of a
// value to b.
func AppendValue(b []byte, v Value) []byte {
	b = append(b, byte(v.Type), byte(len(v.Shape)))
	for _, n := range v.Shape {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return append(b, v.Data...)
}

// DecodeValue returns the value that AppendValue has appended, which is all of b. Its data
// shares the memory of b.
func DecodeValue(b []byte) (v Value, err error) {
	if len(b) < 2 || len(b) < 2+4*int(b[1]) {
		return v, errMalformed
	}
	v.Type = Type(b[0])
	dims, b := b[1], b[2:]
	if v.Type != Bytes {
		v.Shape = []int{}
	}
	for range dims {
		v.Shape = append(v.Shape, int(binary.LittleEndian.Uint32(b)))
		b = b[4:]
	}
	v.Data = b
	return v, v.Check()
}

// A token identifies an update, which a client may send more than once. A session has one
// update at a time, and counts them.
type token struct {
	session [16]byte // random; all zeros for an update that is never sent again
	call    uint64
}

// remembered is the number of sessions whose last update an entry remembers. If more than
// these have updated the key since an update that is repeated, it ends in a VersionError
// or, if any version may be overwritten, takes effect again.
const remembered = 64

// A seen is an update that an entry remembers.
type seen struct {
	token   token
	version uint64 // that it made
}

// tokenSize and seenSize are the sizes of a token and of a seen, in bytes.
const (
	tokenSize = 16 + 8
	seenSize  = tokenSize + 8
)

func appendToken(b []byte, t token) []byte {
	return binary.LittleEndian.AppendUint64(append(b, t.session[:]...), t.call)
}

// decodeToken decodes the first tokenSize bytes of b.
func decodeToken(b []byte) (t token) {
	t.call = binary.LittleEndian.Uint64(b[copy(t.session[:], b):])
	return t
}

// An entry is what the file has under a key.
type entry struct {
	version uint64
	seen    []seen // the last update of each session, newest first; at most remembered
	value   Value
}

// entryFormat is the first byte of an encoded entry.
const entryFormat = 1

// entryHead is the size of what precedes seen: format, length of seen, version.
const entryHead = 1 + 1 + 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode returns the bytes of an entry. They end with a checksum, because bbolt checks
// none of the pages that hold values.
func (e entry) encode() []byte {
	b := make([]byte, 0, entryHead+len(e.seen)*seenSize+2+4*maxDims+len(e.value.Data)+crc32.Size)
	b = append(b, entryFormat, byte(len(e.seen)))
	b = binary.LittleEndian.AppendUint64(b, e.version)
	for _, s := range e.seen {
		b = binary.LittleEndian.AppendUint64(appendToken(b, s.token), s.version)
	}
	b = AppendValue(b, e.value)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeEntry decodes an entry, whose value shares the memory of b.
func decodeEntry(b []byte) (e entry, err error) {
	if len(b) < entryHead+crc32.Size {
		return e, errMalformed
	}
	body, sum := b[:len(b)-crc32.Size], b[len(b)-crc32.Size:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return e, errors.New("the checksum is wrong: the disk has changed the data")
	}
	sessions := int(body[1])
	e.version = binary.LittleEndian.Uint64(body[2:])
	if body[0] != entryFormat {
		return e, fmt.Errorf("format %d is unknown: a newer ringtrain wrote it", body[0])
	}
	body = body[entryHead:]
	if e.version == 0 || sessions > remembered || len(body) < sessions*seenSize {
		return e, errMalformed
	}
	e.seen = make([]seen, sessions)
	for i := range e.seen {
		e.seen[i] = seen{token: decodeToken(body), version: binary.LittleEndian.Uint64(body[tokenSize:])}
		body = body[seenSize:]
	}
	e.value, err = DecodeValue(body)
	return e, err
}

// last returns the last update of a session, if the entry remembers it.
func (e entry) last(session [16]byte) (seen, bool) {
	for _, s := range e.seen {
		if s.token.session == session {
			return s, true
		}
	}
	return seen{}, false
}

// remember returns e.seen after another update.
func (e entry) remember(now seen) []seen {
	if now.token.session == ([16]byte{}) {
		return e.seen
	}
	all := []seen{now}
	for _, s := range e.seen {
		if s.token.session != now.token.session && len(all) < remembered {
			all = append(all, s)
		}
	}
	return all
}
