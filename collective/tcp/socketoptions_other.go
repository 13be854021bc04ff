//go:build !linux

package tcp

import (
	"net"
	"syscall"
)

// setSocketOptions makes a connection send small frames at once. There is no
// TCP_USER_TIMEOUT on this system, so only missing heartbeats reveal a lost machine.
func setSocketOptions(conn net.Conn, _ Channel) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetNoDelay(true)
	}
}

// unpaced does nothing: only Linux needs it.
func unpaced(string, string, syscall.RawConn) error { return nil }

// nothingToRead assumes that everything that has arrived was read.
func nothingToRead(net.Conn) bool { return true }
