package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// Version is the version of the wire format. Both ends of a Link must use the same.
const Version = 2

// confirmation is the byte that a dialler sends after it has read the answer to its
// hello.
const confirmation = 0x06

var (
	// ErrRefused is returned by Connector.Connect if the other side refused the Link. The
	// text says why.
	ErrRefused = errors.New("refused")
	// ErrNotOurs is returned if the other side does not use this protocol.
	ErrNotOurs = errors.New("not a ringtrain peer")

	errHungUp = errors.New("it closed the connection during the handshake")
)

// Identity is who this process claims to be.
type Identity struct {
	Cluster string // processes of other clusters are refused
	Name    string
	Nonce   uint64
	// Secret proves Name and Nonce and encrypts every Link with TLS. If it is nil, Links
	// are neither encrypted nor authenticated. Both ends must have one, or neither.
	Secret *secret.Identity
}

// Peer is the process that a dialler wants to reach. The nonce distinguishes it from an
// earlier process of the same name.
type Peer struct {
	Name  string
	Nonce uint64
}

// Purpose says what a Link is for, so that the other side can decide whether to accept
// it.
type Purpose struct {
	Job, Epoch uint64
	Digest     uint64 // of the View
	Rank       uint32 // the dialler's
	Channel    Channel
	Stream     uint8 // the number of a bulk Link, from 0
	Streams    uint8 // how many bulk Links the two ranks have
}

// Channel is the kind of a Link between two ranks.
type Channel uint8

// The channels: bulk Links carry messages, control Links heartbeats, reports of failures
// and goodbyes.
const (
	Bulk Channel = iota + 1
	Control
)

// A hello is what each side sends first on a connection. Its texts have at most maxText
// bytes.
type hello struct {
	from    Identity
	want    Peer
	purpose Purpose
	refusal string // in an answer: why the Link is refused; empty if it is accepted
}

const (
	magic     = "RINGTRN\x00"
	maxText   = 255
	helloSize = len(magic) + 4 + 8 + 8 + 8 + 8 + 8 + 4 + 3 + 4
)

// append appends the wire form: magic, version, fixed fields, and four texts, each after
// a byte with its length.
func (h *hello) append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, magic...)
	b = le.AppendUint32(b, Version)
	b = le.AppendUint64(b, h.from.Nonce)
	b = le.AppendUint64(b, h.want.Nonce)
	b = le.AppendUint64(b, h.purpose.Job)
	b = le.AppendUint64(b, h.purpose.Epoch)
	b = le.AppendUint64(b, h.purpose.Digest)
	b = le.AppendUint32(b, h.purpose.Rank)
	b = append(b, byte(h.purpose.Channel), h.purpose.Stream, h.purpose.Streams)
	for _, text := range []string{h.from.Cluster, h.from.Name, h.want.Name, h.refusal} {
		text = text[:min(len(text), maxText)]
		b = append(b, byte(len(text)))
		b = append(b, text...)
	}
	return b
}

// readHello reads a hello. It uses no more memory than the longest hello needs, whatever
// arrives.
func readHello(r io.Reader) (hello, error) {
	var h hello
	var buf [helloSize + 4*maxText]byte
	fixed := buf[:helloSize-4]
	if _, err := io.ReadFull(r, fixed[:len(magic)+4]); err != nil {
		return h, err
	}
	if secret.IsTLS(fixed) {
		return h, errTLS
	}
	if string(fixed[:len(magic)]) != magic {
		return h, fmt.Errorf("%w: it sent %q", ErrNotOurs, fixed[:len(magic)])
	}
	le := binary.LittleEndian
	if v := le.Uint32(fixed[len(magic):]); v != Version {
		return h, fmt.Errorf("%w: it uses version %d of the wire format, this process uses version %d: run the same release everywhere", ErrRefused, v, Version)
	}
	if _, err := io.ReadFull(r, fixed[len(magic)+4:]); err != nil {
		return h, err
	}
	f := fixed[len(magic)+4:]
	h.from.Nonce, h.want.Nonce = le.Uint64(f[0:]), le.Uint64(f[8:])
	h.purpose = Purpose{Job: le.Uint64(f[16:]), Epoch: le.Uint64(f[24:]), Digest: le.Uint64(f[32:]), Rank: le.Uint32(f[40:]), Channel: Channel(f[44]), Stream: f[45], Streams: f[46]}
	for _, text := range []*string{&h.from.Cluster, &h.from.Name, &h.want.Name, &h.refusal} {
		if _, err := io.ReadFull(r, buf[:1]); err != nil {
			return h, err
		}
		n := int(buf[0])
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return h, err
		}
		*text = string(buf[:n])
	}
	return h, nil
}
