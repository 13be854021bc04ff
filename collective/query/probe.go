package query

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// A probe is a message between an asker and an Answerer: a datagram over UDP,
// part of the stream over TCP. All have the same size, so no answer is longer
// than its question.
type probe struct {
	kind  probeKind
	flags probeFlags // of a probeResult
	tcp   uint16     // the asker's ports, in a probeBack
	udp   uint16
	token uint64 // drawn at random for each conversation; the lowest pingBits number its datagrams
	time  int64  // the Answerer's clock in a probePong, nanoseconds since 1970
}

// probeKind says what a probe is for.
type probeKind uint8

const (
	probePing   probeKind = iota + 1 // answered by a probePong
	probePong                        // never answered
	probeBack                        // asks for probeKnocks to the asker's ports; only over TCP, answered by a probeResult
	probeResult                      // says what happened to the probeKnocks
	probeKnock                       // a message that the Answerer sends unasked
)

// probeFlags are the content of a probeResult.
type probeFlags uint8

const (
	heardUDP   probeFlags = 1 << iota // datagrams with this token have arrived
	dialled                           // the asker's TCP port accepted the connection
	refusedTCP                        // the asker's TCP port refused the connection
)

const (
	probeMagic = "RTDOC\x001\n"
	probeSize  = len(probeMagic) + 1 + 1 + 2 + 2 + 2 + 8 + 8
	pingBits   = 8 // of the token
)

var errNotProbe = errors.New("the reply is not from ringtrain doctor")

func (p probe) encode() []byte {
	b := append(make([]byte, 0, probeSize), probeMagic...)
	b = append(b, byte(p.kind), byte(p.flags), 0, 0)
	b = binary.LittleEndian.AppendUint16(b, p.tcp)
	b = binary.LittleEndian.AppendUint16(b, p.udp)
	b = binary.LittleEndian.AppendUint64(b, p.token)
	return binary.LittleEndian.AppendUint64(b, uint64(p.time))
}

// decodeProbe reads bytes from outside. It accepts exactly what encode returns.
func decodeProbe(b []byte) (probe, error) {
	if len(b) != probeSize || string(b[:len(probeMagic)]) != probeMagic {
		return probe{}, errNotProbe
	}
	b = b[len(probeMagic):]
	p := probe{
		kind: probeKind(b[0]), flags: probeFlags(b[1]),
		tcp: binary.LittleEndian.Uint16(b[4:]), udp: binary.LittleEndian.Uint16(b[6:]),
		token: binary.LittleEndian.Uint64(b[8:]), time: int64(binary.LittleEndian.Uint64(b[16:])),
	}
	if p.kind < probePing || p.kind > probeKnock || b[2] != 0 || b[3] != 0 {
		return probe{}, fmt.Errorf("%w of the same version", errNotProbe)
	}
	return p, nil
}

// pong returns the answer to a probePing.
func (p probe) pong(now time.Time) probe {
	return probe{kind: probePong, token: p.token, time: now.UnixNano()}
}

// conversation returns the token without the number of the datagram.
func (p probe) conversation() uint64 { return p.token &^ (1<<pingBits - 1) }
