package query

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// A probe is a message of doctor, by UDP a datagram and by TCP a part of the
// stream. All have one size, so no answer is longer than its question.
type probe struct {
	kind  probeKind
	flags probeFlags
	tcp   uint16 // back: the asker's ports
	udp   uint16
	token uint64 // drawn for each conversation
	time  int64  // pong: nanoseconds since 1970, there
}

// probeKind is what a probe is for.
type probeKind uint8

const (
	probePing  probeKind = iota + 1 // answered by a pong
	probePong                       // the answer; never answered
	probeBack                       // asks to be knocked at; by TCP alone, answered by a told
	probeTold                       // what became of that
	probeKnock                      // the other side's own message
)

// probeFlags are what a told says.
type probeFlags uint8

const (
	heardUDP   probeFlags = 1 << iota // datagrams of this token have come
	dialled                           // the asker's TCP port has answered
	refusedTCP                        // ... or nobody listened there
)

const (
	probeMagic = "RTDOC\x001\n"
	probeSize  = len(probeMagic) + 1 + 1 + 2 + 2 + 2 + 8 + 8
)

var errNotProbe = errors.New("not ringtrain doctor")

func (p probe) encode() []byte {
	b := append(make([]byte, 0, probeSize), probeMagic...)
	b = append(b, byte(p.kind), byte(p.flags), 0, 0)
	b = binary.LittleEndian.AppendUint16(b, p.tcp)
	b = binary.LittleEndian.AppendUint16(b, p.udp)
	b = binary.LittleEndian.AppendUint64(b, p.token)
	return binary.LittleEndian.AppendUint64(b, uint64(p.time))
}

// decodeProbe reads foreign bytes. It takes exactly what encode makes.
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
		return probe{}, fmt.Errorf("%w of this version", errNotProbe)
	}
	return p, nil
}

// pong is the answer to a ping.
func (p probe) pong(now time.Time) probe {
	return probe{kind: probePong, token: p.token, time: now.UnixNano()}
}
