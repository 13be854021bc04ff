package tcp

import (
	"net"

	"golang.org/x/sys/unix"
)

// tune sends small frames at once and, on a control Link, makes the kernel give
// up on data that the other side does not acknowledge for as long as a
// heartbeat may be missing. A bulk Link must not have that: its peer may leave
// data unread for as long as it computes, which to the kernel is the same. It
// gets the plainest congestion control where it does not leave the machine:
// nothing is lost there, and to model the path and pace, as BBR does for all that
// have no other, takes a tenth of the time of large messages.
func tune(conn net.Conn, channel Channel) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = c.SetNoDelay(true)
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		switch {
		case channel == Control:
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
		case stays(c):
			_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") // which every kernel has
		}
	})
}

// stays reports whether a connection goes from an address to the same.
func stays(c *net.TCPConn) bool {
	from, here := c.LocalAddr().(*net.TCPAddr)
	to, there := c.RemoteAddr().(*net.TCPAddr)
	return here && there && from.IP.Equal(to.IP)
}

// quiet reports whether nothing has come on a connection that was not read, not
// even its end.
func quiet(conn net.Conn) (nothing bool) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return true
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		nothing = err == unix.EAGAIN
	})
	return nothing
}
