package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// Version is the version of the wire format. Both ends of a Link have the same.
const Version = 2

// confirmation is the byte that a dialler sends once it has read the answer to
// its hello.
const confirmation = 0x06

var (
	// ErrRefused is returned by Dial when the other side answered and said no;
	// the text says why.
	ErrRefused = errors.New("refused")
	// ErrNotOurs is returned when the other side does not speak this protocol.
	ErrNotOurs = errors.New("not a ringtrain peer")

	errHungUp = errors.New("it hung up in the middle of the handshake")
)

// A verdict is a refusal by the very peer that was meant, so it would say the
// same at another of its addresses.
type verdict struct{ error }

func (v verdict) Unwrap() error { return v.error }

// Identity is who this process says it is.
type Identity struct {
	Cluster string // processes of other clusters are refused
	Name    string
	Nonce   uint64
	// Secret proves Name and Nonce, and puts every Link under TLS. Without it
	// Links are plain. Both ends have one or none.
	Secret *secret.Identity
}

// Peer is whom a dialler means to reach: this process in this life.
type Peer struct {
	Name  string
	Nonce uint64
}

// Purpose says what a Link is for. The accepting side decides by it.
type Purpose struct {
	Job, Epoch uint64
	Digest     uint64 // of the View
	Rank       uint32 // the dialler's
	Channel    Channel
	Stream     uint8 // which of the bulk Links of the pair, from 0
	Streams    uint8 // of how many
}

// Channel is one of the Links between two ranks.
type Channel uint8

// The channels of a pair of ranks.
const (
	Bulk Channel = iota + 1
	Control
)

// A hello opens a Link, from each side. Texts have at most maxText bytes.
type hello struct {
	from    Identity
	want    Peer
	purpose Purpose
	refusal string // the accepting side's: why not; empty for yes
}

const (
	magic     = "RINGTRN\x00"
	maxText   = 255
	helloSize = len(magic) + 4 + 8 + 8 + 8 + 8 + 8 + 4 + 3 + 4
)

// append appends the wire form: magic, version, fixed fields, then four texts
// each with a length byte before it.
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

// readHello reads a hello and takes no more memory than the longest one.
func readHello(r io.Reader) (hello, error) {
	var h hello
	var buf [helloSize + 4*maxText]byte
	fixed := buf[:helloSize-4]
	if _, err := io.ReadFull(r, fixed[:len(magic)+4]); err != nil {
		return h, err
	}
	if isTLS(fixed) {
		return h, errSealed
	}
	if string(fixed[:len(magic)]) != magic {
		return h, fmt.Errorf("%w: it began with %q", ErrNotOurs, fixed[:len(magic)])
	}
	le := binary.LittleEndian
	if v := le.Uint32(fixed[len(magic):]); v != Version {
		return h, fmt.Errorf("%w: it speaks version %d of the wire format, this is version %d", ErrRefused, v, Version)
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
