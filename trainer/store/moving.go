package store

import "net"

// pieceSize is the number of bytes in a write of a moving connection.
const pieceSize = 64 << 10

// A moving is a connection that calls moved after each read or write of some bytes. A long
// message is written in pieces.
type moving struct {
	net.Conn
	moved func()
}

func (m moving) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	if n > 0 {
		m.moved()
	}
	return n, err
}

func (m moving) Write(b []byte) (written int, err error) {
	for err == nil && written < len(b) {
		var n int
		n, err = m.Conn.Write(b[written:min(written+pieceSize, len(b))])
		if written += n; n > 0 {
			m.moved()
		}
	}
	return written, err
}
