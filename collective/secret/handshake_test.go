package secret_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/secret"
)

const hello = "hello without TLS"

// dial returns the error of a dialler that uses TLS, of another side that answer is.
func dial(t *testing.T, config *tls.Config, answer func(net.Conn)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if far, err := l.Accept(); err == nil {
			_ = far.SetDeadline(time.Now().Add(10 * time.Second))
			answer(far)
			secret.Linger(far, far)
			_ = far.Close()
		}
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, raw.SetDeadline(time.Now().Add(10*time.Second)))
	conn := tls.Client(raw, config)
	if err = conn.Handshake(); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	require.NoError(t, errors.Join(raw.Close(), l.Close()))
	<-done
	return err
}

func TestRefusal(t *testing.T) {
	identity := func() *secret.Identity {
		id, err := secret.New().Identity("b", 1)
		require.NoError(t, err)
		return id
	}
	mine, other := identity(), identity()
	serve := func(config *tls.Config) func(net.Conn) {
		return func(c net.Conn) { _ = tls.Server(c, config).Handshake() }
	}
	plain := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = c.Write([]byte(text)) }
	}
	unchecked := mine.Client("b", 1).Clone()
	unchecked.VerifyConnection = nil
	for _, c := range []struct {
		name   string
		config *tls.Config
		answer func(net.Conn)
		is     error
		want   string // "" if it is no refusal
	}{
		{"another key", mine.Client("b", 1), serve(other.Server()), secret.ErrOtherKey, "it uses a different key"},
		{"another process", mine.Client("c", 1), serve(mine.Server()), secret.ErrOtherPeer, "another process answered: this is b, not c"},
		{"it has no key", mine.Client("b", 1), plain(hello), nil, secret.LacksKey},
		{"it rejects our key", unchecked, serve(other.Server()), nil, "it rejected this process's certificate: it has a different key, or its clock differs by more than a day"},
		{"another protocol", mine.Client("b", 1), plain("HTTP/1.1 400 Bad Request"), nil, ""},
		{"it hangs up", mine.Client("b", 1), func(net.Conn) {}, nil, ""},
	} {
		err := dial(t, c.config, c.answer)
		require.Error(t, err, c.name)
		reason, ok := secret.Refusal(fmt.Errorf("wrapped: %w", err), hello)
		require.Equal(t, c.want != "", ok, "%s: %v", c.name, err)
		require.Equal(t, c.name == "it rejects our key", secret.Alert(err) != nil, c.name)
		if !ok {
			require.NoError(t, reason)
			continue
		}
		require.ErrorContains(t, reason, c.want, c.name)
		if c.is != nil {
			require.ErrorIs(t, reason, c.is, c.name)
		}
	}
	wrapped := &tls.CertificateVerificationError{Err: secret.ErrClock}
	reason, ok := secret.Refusal(wrapped, hello)
	require.True(t, ok)
	require.Equal(t, secret.ErrClock, reason, "without the text of crypto/tls")
	_, ok = secret.Refusal(&net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}, hello)
	require.False(t, ok, "the other side has said nothing, so another attempt may succeed")
	reason, ok = secret.Refusal(nil, hello)
	require.False(t, ok)
	require.NoError(t, reason)
}

func TestIsTLS(t *testing.T) {
	var first [5]byte
	_ = dial(t, &tls.Config{InsecureSkipVerify: true}, func(c net.Conn) { _, _ = io.ReadFull(c, first[:]) })
	require.True(t, secret.IsTLS(first[:]))
	require.True(t, secret.IsTLS(first[:2]))
	require.False(t, secret.IsTLS(first[:1]))
	require.False(t, secret.IsTLS([]byte(hello)))
	require.False(t, secret.IsTLS([]byte{first[0], 0}))
	require.False(t, secret.IsTLS(nil))
}

// The other side receives the refusal even if it has sent data that was never read.
func TestLinger(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte("refused"))
		secret.Linger(conn, conn)
		_ = conn.Close()
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write(make([]byte, 32<<10))
	require.NoError(t, err)
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "refused", string(text))
}
