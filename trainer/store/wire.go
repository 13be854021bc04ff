package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// A connection begins with magic and the version of the protocol from both sides, then a
// reply that accepts or refuses the client. After that, each request gets one reply.
const (
	magic        = "rtstore"
	protocol     = '1'
	helloSize    = len(magic) + 1
	maxText      = 1024                      // bytes of an error
	maxMessage   = MaxValue + 2*MaxKey + 128 // bytes of a request or a reply, also of a list of pageKeys keys
	maxHandshake = 1 + 8 + maxText           // bytes of the reply that ends the handshake
)

// An operation is what a request asks for.
type operation uint8

const (
	opGet operation = iota + 1
	opSet
	opKeys
)

// A request is a message of a client.
type request struct {
	op      operation
	key     string // prefix, for opKeys
	after   string // for opKeys
	version uint64 // for opSet
	token   token  // for opSet
	value   Value  // for opSet
}

// requestHead is the size of a request's fields of fixed size, with the length of key.
const requestHead = 1 + 8 + tokenSize + 2

// encode returns the message, for writeMessage.
func (r request) encode() []byte {
	b := newMessage(requestHead + len(r.key) + 2 + len(r.after) + 2 + 4*maxDims + len(r.value.Data))
	b = append(b, byte(r.op))
	b = binary.LittleEndian.AppendUint64(b, r.version)
	b = appendToken(b, r.token)
	b = appendText(b, r.key)
	b = appendText(b, r.after)
	if r.op == opSet {
		b = AppendValue(b, r.value)
	}
	return b
}

// decodeRequest decodes a request, whose value shares the memory of b.
func decodeRequest(b []byte) (r request, err error) {
	if len(b) < requestHead {
		return r, errMalformed
	}
	r.op, r.version = operation(b[0]), binary.LittleEndian.Uint64(b[1:])
	r.token = decodeToken(b[9:])
	if r.key, b, err = cutText(b[9+tokenSize:]); err == nil {
		r.after, b, err = cutText(b)
	}
	switch {
	case err != nil:
		return r, err
	case r.op == opSet:
		r.value, err = DecodeValue(b)
		return r, err
	case r.op != opGet && r.op != opKeys || len(b) > 0:
		return r, errMalformed
	}
	return r, nil
}

// A status is the kind of a reply.
type status uint8

const (
	statusDone     status = iota + 1
	statusNotFound        // ErrNotFound
	statusVersion         // a VersionError; version is what the key has
	statusRefused         // ErrRefused; the rest is the reason
	statusFailed          // the server cannot; the rest is the reason
)

// A reply is a message of a server.
type reply struct {
	status  status
	version uint64
	rest    []byte // a value, keys or the text of an error
}

// encode returns the message, for writeMessage.
func (r reply) encode() []byte {
	b := newMessage(1 + 8 + len(r.rest))
	b = append(b, byte(r.status))
	b = binary.LittleEndian.AppendUint64(b, r.version)
	return append(b, r.rest...)
}

// decodeReply decodes a reply, which shares the memory of b.
func decodeReply(b []byte) (r reply, err error) {
	if len(b) < 9 {
		return r, errMalformed
	}
	r = reply{status: status(b[0]), version: binary.LittleEndian.Uint64(b[1:]), rest: b[9:]}
	if r.status < statusDone || r.status > statusFailed {
		return r, errMalformed
	}
	return r, nil
}

// text returns the text of an error. The server may be anybody, so it is one short line
// of printable characters.
func (r reply) text() string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, string(r.rest[:min(len(r.rest), maxText)]))
}

// err returns the error that the reply to a request means.
func (r reply) err(to request) error {
	switch r.status {
	case statusNotFound:
		return fmt.Errorf("%w: %q", ErrNotFound, to.key)
	case statusVersion:
		return &VersionError{Key: to.key, Want: to.version, Have: r.version}
	case statusRefused:
		return fmt.Errorf("%w: %s", ErrRefused, r.text())
	case statusFailed:
		return errors.New(r.text())
	}
	return nil
}

// replyTo returns the reply that says that a request failed.
func replyTo(err error) reply {
	var version *VersionError
	text, refused := strings.CutPrefix(err.Error(), ErrRefused.Error()+": ")
	switch {
	case errors.Is(err, ErrNotFound):
		return reply{status: statusNotFound}
	case errors.As(err, &version):
		return reply{status: statusVersion, version: version.Have}
	case refused:
		return reply{status: statusRefused, rest: []byte(text)}
	}
	return reply{status: statusFailed, rest: []byte(text)}
}

// appendText appends the length of s, at most 65535 bytes, and s.
func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
}

func cutText(b []byte) (s string, rest []byte, err error) {
	if len(b) < 2 {
		return "", nil, errMalformed
	}
	n, b := int(binary.LittleEndian.Uint16(b)), b[2:]
	if len(b) < n {
		return "", nil, errMalformed
	}
	return string(b[:n]), b[n:], nil
}

// decodeKeys decodes a list of keys.
func decodeKeys(b []byte) (keys []string, err error) {
	for len(b) > 0 {
		var key string
		if key, b, err = cutText(b); err != nil {
			return nil, err
		}
		if err := CheckKey(key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// lengthSize is the size of the length that precedes a message.
const lengthSize = 4

// newMessage returns an empty message for about n bytes, with room for its length before.
func newMessage(n int) []byte { return make([]byte, lengthSize, lengthSize+n) }

// writeMessage writes a message that began as newMessage, and its length.
func writeMessage(w io.Writer, b []byte) error {
	binary.LittleEndian.PutUint32(b, uint32(len(b)-lengthSize))
	_, err := w.Write(b)
	return err
}

// readMessage reads what writeMessage wrote. It allocates memory as data arrives, not as
// announced.
func readMessage(r io.Reader, limit int) ([]byte, error) {
	var head [lengthSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n > int64(limit) {
		return nil, fmt.Errorf("%w: a message must have at most %d bytes, not %d", ErrRefused, limit, n)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, n); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
