package tcp

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// connected returns both ends of a connection between two addresses of this machine, after
// setSocketOptions.
func connected(t *testing.T, from, to string, channel Channel) (ends [2]*net.TCPConn) {
	ln, err := (&net.ListenConfig{Control: unpaced}).Listen(t.Context(), "tcp", net.JoinHostPort(to, "0"))
	require.NoError(t, err)
	defer func() { require.NoError(t, ln.Close()) }()
	dialer := net.Dialer{Control: unpaced, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	dialled, err := dialer.DialContext(t.Context(), "tcp", ln.Addr().String())
	require.NoError(t, err)
	accepted, err := ln.Accept()
	require.NoError(t, err)
	for i, c := range []net.Conn{dialled, accepted} {
		ends[i] = c.(*net.TCPConn)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
	}
	for _, c := range ends {
		require.Equal(t, "reno", congestion(t, c), "before setSocketOptions")
		setSocketOptions(c, channel)
	}
	return ends
}

func congestion(t *testing.T, c *net.TCPConn) (name string) {
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	}))
	require.NoError(t, err)
	return name
}

// Addresses of a machine stand for machines: its own are equal, those of others differ.
func TestCongestionControl(t *testing.T) {
	system, err := defaultCongestion()
	require.NoError(t, err)
	for _, ch := range []Channel{Bulk, Control} {
		for _, c := range connected(t, "127.0.0.1", "127.0.0.1", ch) {
			require.Equal(t, "reno", congestion(t, c), "inside a machine")
		}
	}
	for _, c := range connected(t, "127.0.0.1", "127.0.0.2", Control) {
		require.Equal(t, system, congestion(t, c), "between machines")
	}
	for _, c := range connected(t, "127.0.0.1", "127.0.0.2", Bulk) {
		if system == "bbr" {
			require.Contains(t, []string{"reno", "cubic"}, congestion(t, c), "bulk, between machines")
		} else {
			require.Equal(t, system, congestion(t, c), "bulk, between machines")
		}
	}
}
