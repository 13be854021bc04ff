//go:build !linux

package tcp

import "net"

// tune leaves lost machines to the heartbeat: this system has no
// TCP_USER_TIMEOUT.
func tune(conn net.Conn, _ Channel) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetNoDelay(true)
	}
}

// quiet takes it that what has come was read.
func quiet(net.Conn) bool { return true }
