package keyed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/store"
)

// A client sends requests, and the server answers each by a message of the same tag, which
// the client chooses. Messages are bytes.

// maxMessage is the maximum length of a message: a value with its shape, its key and a head.
const maxMessage = store.MaxValue + store.MaxKey + 128

// errMalformed means that bytes do not have the format of what they should be.
var errMalformed = errors.New("malformed: run the same version on every machine")

// An operation is what a request asks for.
type operation uint8

const (
	opPull   operation = iota + 1 // the value, unless its version is the given one
	opSet                         // store.Store.Set; answer: the version
	opPush                        // apply a gradient, the value; answer: the version
	opKeys                        // the keys that begin with key; answer: bytes, a line for each
	opFind                        // the first server only: which server holds key; answer: its index
	opAssign                      // opFind for a key that may be new, of version bytes
	opEnd
)

// A request is a message of a client.
type request struct {
	op      operation
	version uint64
	key     string
	value   store.Value // for opSet and opPush
}

// requestHead is the size of the fields before the key: op, version, length of the key.
const requestHead = 1 + 8 + 2

func (o operation) hasValue() bool { return o == opSet || o == opPush }

// append appends the wire form of a request, whose key has at most store.MaxKey bytes.
func (q request) append(b []byte) []byte {
	b = append(b, byte(q.op))
	b = binary.LittleEndian.AppendUint64(b, q.version)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(q.key)))
	b = append(b, q.key...)
	if q.op.hasValue() {
		b = store.AppendValue(b, q.value)
	}
	return b
}

// decodeRequest decodes a request, whose value shares the memory of b.
func decodeRequest(b []byte) (q request, err error) {
	if len(b) < requestHead {
		return q, errMalformed
	}
	q.op, q.version = operation(b[0]), binary.LittleEndian.Uint64(b[1:])
	n := int(binary.LittleEndian.Uint16(b[9:]))
	b = b[requestHead:]
	if q.op < opPull || q.op >= opEnd || n > store.MaxKey || n > len(b) {
		return q, errMalformed
	}
	q.key, b = string(b[:n]), b[n:]
	switch {
	case q.op.hasValue():
		q.value, err = store.DecodeValue(b)
	case len(b) > 0:
		err = errMalformed
	}
	return q, err
}

// A status is the kind of an answer.
type status uint8

const (
	statusDone     status = iota + 1
	statusValue           // done, and the rest is a value
	statusNotFound        // store.ErrNotFound
	statusVersion         // a store.VersionError; version is what the key has
	statusRefused         // store.ErrRefused; the rest is the reason
	statusEnd
)

// An answer is a message of a server.
type answer struct {
	status  status
	version uint64
	value   store.Value // for statusValue
	text    string      // for statusRefused
}

// answerHead is the size of status and version.
const answerHead = 1 + 8

// append appends the wire form of an answer.
func (a answer) append(b []byte) []byte {
	b = append(b, byte(a.status))
	b = binary.LittleEndian.AppendUint64(b, a.version)
	if a.status == statusValue {
		return store.AppendValue(b, a.value)
	}
	return append(b, a.text...)
}

// decodeAnswer decodes an answer, whose value shares the memory of b.
func decodeAnswer(b []byte) (a answer, err error) {
	if len(b) < answerHead {
		return a, errMalformed
	}
	a.status, a.version = status(b[0]), binary.LittleEndian.Uint64(b[1:])
	b = b[answerHead:]
	switch {
	case a.status < statusDone || a.status >= statusEnd:
		err = errMalformed
	case a.status == statusValue:
		a.value, err = store.DecodeValue(b)
	case a.status == statusRefused:
		a.text = string(b)
	case len(b) > 0:
		err = errMalformed
	}
	return a, err
}

// refusal returns the answer to a request that failed with err, or false if err is not
// about the request.
func refusal(err error) (answer, bool) {
	var version *store.VersionError
	switch {
	case errors.As(err, &version):
		return answer{status: statusVersion, version: version.Have}, true
	case errors.Is(err, store.ErrNotFound):
		return answer{status: statusNotFound}, true
	case errors.Is(err, store.ErrRefused):
		return answer{status: statusRefused, text: strings.TrimPrefix(err.Error(), store.ErrRefused.Error()+": ")}, true
	}
	return answer{}, false
}

// err returns the error that an answer to a request means, if any.
func (a answer) err(q request) error {
	switch a.status {
	case statusNotFound:
		return fmt.Errorf("%w: %q", store.ErrNotFound, q.key)
	case statusVersion:
		return &store.VersionError{Key: q.key, Want: q.version, Have: a.version}
	case statusRefused:
		return fmt.Errorf("%w: %s", store.ErrRefused, a.text)
	}
	return nil
}
