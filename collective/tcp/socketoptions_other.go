//go:build !linux

package tcp

import "net"

// setSocketOptions makes a connection send small frames at once. There is no
// TCP_USER_TIMEOUT on this system, so only missing heartbeats reveal a lost machine.
func setSocketOptions(conn net.Conn, _ Channel) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetNoDelay(true)
	}
}

// nothingToRead assumes that everything that has arrived was read.
func nothingToRead(net.Conn) bool { return true }
