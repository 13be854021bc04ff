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

// hungUp leaves connections that have ended to their first use.
func hungUp(net.Conn) bool { return false }
