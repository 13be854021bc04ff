package main

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The rate is the number of bytes received divided by the time.
func TestReceive(t *testing.T) {
	in, out := net.Pipe()
	go func() {
		b := make([]byte, 1000)
		for err := error(nil); err == nil; {
			_, err = out.Write(b)
		}
	}()
	rate, err := receive(in, 50*time.Millisecond)
	require.NoError(t, err)
	require.Positive(t, rate)
	require.NoError(t, in.Close())
	_, err = receive(in, time.Millisecond)
	require.Error(t, err)
}

func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c, err := dial(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, l.Close())
}

func TestWrongRate(t *testing.T) {
	var b bytes.Buffer
	require.ErrorContains(t, measure(2, "fast", time.Second, &b), "fast")
	require.Empty(t, b.String())
}
