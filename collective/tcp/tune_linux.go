package tcp

import (
	"net"

	"golang.org/x/sys/unix"
)

// tune makes the kernel give up on data that the other side does not
// acknowledge for as long as a heartbeat may be missing: an unplugged machine
// otherwise goes unnoticed for many minutes. Without the option the heartbeat
// alone finds it.
func tune(conn net.Conn) {
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
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
	})
}
