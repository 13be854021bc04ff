package store

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// Without a key, a Server listens on loopback only, unless it is told otherwise.
func TestLoopbackOnly(t *testing.T) {
	db := opened(t, t.TempDir())
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		_, err := Serve(db, ServerConfig{Addr: addr})
		require.ErrorIs(t, err, ErrNoKey)
		require.ErrorContains(t, err, "ringtrain keygen, or give --insecure")
		serving(t, db, ServerConfig{Addr: addr, Insecure: true})
		serving(t, db, ServerConfig{Addr: addr, Key: newKey(t)})
	}
	_, err := Serve(db, ServerConfig{Addr: "nowhere"})
	require.ErrorContains(t, err, "missing port")
}

// A client may take long to send a request if some bytes of it come now and then.
func TestSlowRequest(t *testing.T) {
	s := serving(t, opened(t, t.TempDir()), ServerConfig{})
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go s.converse(far)
		defer near.Close()
		require.NoError(t, greet(near))
		ask := request{op: opGet, key: "w"}.encode()
		require.NoError(t, writeMessage(io.Discard, ask)) // sets its length
		for _, b := range ask {
			<-time.After(messageTime / 2)
			_, err := near.Write([]byte{b})
			require.NoError(t, err)
		}
		r, err := readReply(near, maxMessage)
		require.NoError(t, err)
		require.Equal(t, statusNotFound, r.status)
	})
}

// A client with another key, or a key on one side only, is told so, and the server says
// whom it has refused.
func TestOtherKey(t *testing.T) {
	key, other := newKey(t), newKey(t)
	for _, c := range []struct {
		server, client *secret.Key
		says, log      string
	}{
		{key, other, "it uses a different key; give both the same key file", ""},
		{key, nil, "it has a key, and the client has none: give both the same key file", "it has a key, and the client has none"},
		{nil, key, "it has no key, and this process has one: give both the same key file", "it has no key, and the client has one"},
	} {
		var mu sync.Mutex
		var lines []string
		s := serving(t, opened(t, t.TempDir()), ServerConfig{Key: c.server, Log: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}})
		begin := time.Now()
		_, err := connected(t, s, c.client).Set(t.Context(), "w", Raw(nil), Any)
		require.ErrorIs(t, err, ErrRefused)
		require.EqualError(t, err, "store "+s.Addr().String()+": refused: "+c.says)
		require.Less(t, time.Since(begin), 20*time.Second, "it is not tried again")

		good := connected(t, s, c.server)
		_, err = good.Set(t.Context(), "v", Raw(nil), Any)
		require.NoError(t, err)
		keys, err := good.Keys(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, []string{"v"}, keys, "what was refused changed nothing")
		require.NoError(t, s.Close())
		require.Contains(t, strings.Join(lines, "\n"), c.log)
	}
}

// A worker of a job with the same key cannot pass for the store, and a client that does
// not check whom it talks to still needs the key.
func TestIdentity(t *testing.T) {
	key := newKey(t)
	worker, err := key.Identity("vm1/0", 7)
	require.NoError(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", worker.Server())
	require.NoError(t, err)
	defer l.Close()
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		if conn, err := l.Accept(); err == nil {
			_ = conn.(*tls.Conn).HandshakeContext(context.Background())
			_ = conn.Close()
		}
	})
	c, err := NewClient(ClientConfig{Addr: l.Addr().String(), Key: key})
	require.NoError(t, err)
	defer c.Close()
	_, _, err = c.Get(t.Context(), "w")
	require.ErrorIs(t, err, secret.ErrOtherPeer)
	require.EqualError(t, err, "store "+l.Addr().String()+": refused: another process answered: this is vm1/0, not ringtrain store; check the address of the store")
	require.EqualError(t, tlsError(secret.ErrClock), "refused: "+secret.ErrClock.Error())

	s := serving(t, opened(t, t.TempDir()), ServerConfig{Key: key})
	conn, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		_, _ = conn.Write(hello())
		_, err = io.ReadFull(conn, make([]byte, 1))
		_ = conn.Close()
	}
	require.Error(t, err, "it has no certificate")
}

// Whatever a client sends, the server refuses it, keeps serving, and nothing changes.
func TestHostileClients(t *testing.T) {
	db := opened(t, t.TempDir())
	s := serving(t, db, ServerConfig{})
	good := connected(t, s, nil)
	w := tensor(t, []float32{1, 2})
	_, err := good.Set(t.Context(), "w", w, 0)
	require.NoError(t, err)

	set := func(v Value) []byte { return request{op: opSet, key: "w", version: Any, value: v}.encode() }
	framed := func(b []byte) []byte { // with the right length
		binary.LittleEndian.PutUint32(b, uint32(len(b)-lengthSize))
		return b
	}
	long := binary.LittleEndian.AppendUint32(nil, maxMessage+1)
	whole := framed(set(tensor(t, []float32{3, 4})))
	for name, c := range map[string]struct {
		sent []byte // after the hello
		says string // in the last reply; "" if there is none
	}{
		"oversized":      {long, "a message must have at most"},
		"truncated":      {whole[:len(whole)-1], ""},
		"no length":      {whole[:2], ""},
		"empty":          {framed(newMessage(0)), "a malformed request"},
		"unknown":        {framed(request{op: 9, key: "w"}.encode()), "a malformed request"},
		"more than get":  {framed(append(request{op: opGet, key: "w"}.encode(), 0)), "a malformed request"},
		"short value":    {framed(set(Value{Type: Float32, Shape: []int{2}, Data: make([]byte, 7)})), "float32 [2] takes 8 bytes, not 7"},
		"long value":     {framed(set(Value{Type: Float32, Shape: []int{2}, Data: make([]byte, 9)})), "float32 [2] takes 8 bytes, not 9"},
		"unknown type":   {framed(set(Value{Type: 77, Data: make([]byte, 8)})), "type 77 does not exist"},
		"other shape":    {framed(set(tensor(t, []float32{3, 4}, 2, 1))), `"w" holds float32 [2]`},
		"too many":       {framed(set(tensor(t, []float32{3, 4, 5}))), `"w" holds float32 [2]`},
		"bad key":        {framed(request{op: opSet, key: "a\n", version: Any, value: w}.encode()), "must be printable"},
		"long key":       {framed(request{op: opSet, key: strings.Repeat("k", MaxKey+1), version: Any, value: w}.encode()), "a key must have at most"},
		"no key":         {framed(request{op: opGet}.encode()), "a key must not be empty"},
		"huge dimension": {framed(set(Value{Type: Float64, Shape: []int{1 << 31, 1 << 31, 4}})), "a dimension must be from 0 to"},
	} {
		replies := converse(t, s, append(hello(), c.sent...))
		require.Equal(t, hello(), replies[:helloSize], name)
		last := lastReply(t, replies[helloSize:])
		if c.says == "" {
			require.Equal(t, statusDone, last.status, name)
		} else {
			require.Equal(t, statusRefused, last.status, name)
			require.Contains(t, last.text(), c.says, name)
		}
		got, version, err := good.Get(t.Context(), "w")
		require.NoError(t, err, name)
		require.EqualValues(t, 1, version, name)
		require.Equal(t, w, got, name)
		keys, err := good.Keys(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, []string{"w"}, keys, name)
	}

	old := converse(t, s, append([]byte(magic), '0'))
	require.Contains(t, lastReply(t, old[helloSize:]).text(), `it speaks version 1 of the protocol, and the client version '0'`)
	require.Empty(t, converse(t, s, []byte("GET / HTTP/1.1\r\n\r\n")), "a stranger gets no answer")
	require.Empty(t, converse(t, s, nil))
}

// converse sends bytes, and returns all that the server answers.
func converse(t *testing.T, s *Server, sent []byte) []byte {
	conn, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Write(sent)
	require.NoError(t, err)
	_ = conn.(*net.TCPConn).CloseWrite() // fails if the server has hung up
	all, _ := io.ReadAll(conn)           // it may end with a reset
	return all
}

// lastReply returns the last of several replies.
func lastReply(t *testing.T, b []byte) (last reply) {
	for r := bytes.NewReader(b); r.Len() > 0; {
		message, err := readMessage(r, maxMessage)
		require.NoError(t, err)
		last, err = decodeReply(message)
		require.NoError(t, err)
	}
	return last
}

// Close does not wait for clients, whatever they do.
func TestClose(t *testing.T) {
	s := serving(t, opened(t, t.TempDir()), ServerConfig{})
	for _, sent := range [][]byte{nil, []byte("rt"), hello(), append(hello(), 1, 0)} {
		conn, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write(sent)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
}
