package tcp

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setSocketOptions makes a connection send small frames at once, and:
//
//   - A control Link fails if sent data is not acknowledged within silenceLimit. A bulk
//     Link must not do so: its peer may leave data unread for as long as it computes, and
//     the kernel treats that the same.
//   - A connection between machines gets the congestion control that is the system's
//     default; a bulk Link over a short path does not get BBR, see unpaced.
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
	_ = raw.Control(func(descriptor uintptr) {
		fd := int(descriptor)
		if channel == Control {
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceLimit.Milliseconds()))
		}
		if sameAddress(c) {
			return
		}
		name, err := defaultCongestion()
		switch {
		case err != nil:
		case name == "bbr" && channel != Control && isShort(fd):
			_ = setCongestion(fd, "cubic") // recovers faster after a loss; the system may forbid it
		default:
			_ = setCongestion(fd, name)
		}
	})
}

// unpaced makes a socket that is not connected yet use Reno, the simplest congestion
// control. It is the Control function of a net.Dialer and a net.ListenConfig, whose accepted
// connections inherit the choice. Connections inside a machine keep it: nothing is lost
// there.
//
// BBR, the default of some systems, paces what it sends at the rate that it has seen, which
// is too low for calls with pauses between them. Eight hosts at 1 Gbit/s took a fifth longer
// for a call of 1 MB with it, and processes of one machine up to twice as long. A socket
// that has ever been connected with BBR is paced for good, whatever it uses later, so
// setSocketOptions comes too late. On long paths BBR is better: losses do not slow it down.
func unpaced(_, _ string, raw syscall.RawConn) error {
	_ = raw.Control(func(fd uintptr) { _ = setCongestion(int(fd), "reno") }) // every kernel has it
	return nil
}

func setCongestion(fd int, name string) error {
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
}

// defaultCongestion returns the system's congestion control: that of a new socket.
func defaultCongestion() (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
}

// shortPath is the longest round trip between machines of one site.
const shortPath = 5 * time.Millisecond

// isShort reports whether the shortest round trip of a connection was at most shortPath.
func isShort(fd int) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && time.Duration(info.Min_rtt)*time.Microsecond <= shortPath
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
