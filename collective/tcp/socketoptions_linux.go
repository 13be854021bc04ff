package tcp

import (
	"net"

	"golang.org/x/sys/unix"
)

// setSocketOptions makes a connection send small frames at once, and:
//
//   - A control Link fails if sent data is not acknowledged within silenceLimit. A bulk
//     Link must not do so: its peer may leave data unread for as long as it computes, and
//     the kernel treats that the same.
//   - A bulk Link that stays on this machine uses the simplest congestion control. Nothing
//     is lost there, and the model and the pacing of BBR, if that is the system's default,
//     take a tenth of the time of large messages.
func setSocketOptions(conn net.Conn, channel Channel) {
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
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceLimit.Milliseconds()))
		case sameAddress(c):
			_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") // every kernel has it
		}
	})
}

// sameAddress reports whether both ends of a connection have the same IP address.
func sameAddress(c *net.TCPConn) bool {
	from, here := c.LocalAddr().(*net.TCPAddr)
	to, there := c.RemoteAddr().(*net.TCPAddr)
	return here && there && from.IP.Equal(to.IP)
}

// nothingToRead reports whether a read would block: there is no unread data, and the
// connection has not ended.
func nothingToRead(conn net.Conn) (nothing bool) {
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
