package membership

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The first bytes of memberlist's streams, and the kinds of messages that announce
// lengths.
const (
	labelMark   = 244
	sealedMark  = 10
	wholeState  = 6
	userMessage = 8
)

// labelled returns a stream with the label of a cluster.
func labelled(cluster string, rest ...byte) []byte {
	b := append([]byte{labelMark, byte(len(cluster))}, cluster...)
	return append(b, rest...)
}

// sealed returns a message as a process with the key sends it.
func sealed(t *testing.T, cluster string, key, msg []byte) []byte {
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)
	head := []byte{sealedMark, 0, 0, 0, 0}
	nonce := make([]byte, gcm.NonceSize())
	binary.BigEndian.PutUint32(head[1:], uint32(1+len(nonce)+len(msg)+gcm.Overhead()))
	b := append(append(bytes.Clone(head), 1), nonce...)
	return labelled(cluster, gcm.Seal(b, nonce, msg, append(head, cluster...))...)
}

// pack returns a msgpack map of one text and one number of 32 bits.
func pack(name string, n uint32) []byte {
	b := append([]byte{0x81, 0xa0 | byte(len(name))}, name...)
	return binary.BigEndian.AppendUint32(append(b, 0xce), n)
}

// If a process with the right key announces a huge length, it is refused before
// anything is allocated, and the log has the length.
func TestHugeLengths(t *testing.T) {
	noLeak(t)
	key := bytes.Repeat([]byte("K"), keySize)
	var said lines
	log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug - 4}))
	a := start(t, Config{Member: member("vm0", 0, 1), Nodes: 2, Key: key, Log: log})
	const cluster = "ringtrain"
	frame := labelled(cluster, sealedMark, 0xff, 0xff, 0xff, 0xff)
	for says, stream := range map[string][]byte{
		"remote node state is larger than limit (4294967295)":  frame,
		"number of nodes in header (4294967295) exceeds limit": sealed(t, cluster, key, append([]byte{wholeState}, pack("Nodes", 1<<32-1)...)),
		"user state length (4294967295) exceeds limit":         sealed(t, cluster, key, append([]byte{wholeState}, pack("UserStateLen", 1<<32-1)...)),
		"user message length (4294967295) exceeds limit":       sealed(t, cluster, key, append([]byte{userMessage}, pack("UserMsgLen", 1<<32-1)...)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		conn, err := net.Dial("tcp", a.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write(stream)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, conn) // until it hangs up
		require.NoError(t, conn.Close())
		runtime.ReadMemStats(&after)
		require.Contains(t, said.String(), says)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), says)
	}
	b := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Key: key, Join: []string{a.Addr().String()}})
	views(t, []*Agent{a, b})
}
