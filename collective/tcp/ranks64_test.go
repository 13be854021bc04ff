package tcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// A job of 64 ranks with 8 streams has 18144 connections, too many for the file descriptors
// of one process. Four processes have 16 ranks each.
const (
	manyRanks, manyProcesses = 64, 4
	partVariable             = "RINGTRAIN_TEST_PART"
)

// Many ranks with many streams connect, all at once, on any number of cores.
func TestManyRanksAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("18144 connections: -short")
	}
	var parts []*exec.Cmd
	var in []io.WriteCloser
	var out []*bufio.Reader
	for i := range manyProcesses {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPartOfManyRanks$", "-test.v")
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", partVariable, i))
		c.Stderr = os.Stderr
		w, err := c.StdinPipe()
		require.NoError(t, err)
		r, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		parts, in, out = append(parts, c), append(in, w), append(out, bufio.NewReader(r))
	}
	var addrs []string
	for _, r := range out {
		addrs = append(addrs, answer(t, r, "listening"))
	}
	for _, w := range in {
		_, err := fmt.Fprintln(w, strings.Join(addrs, " "))
		require.NoError(t, err)
	}
	for _, r := range out {
		assert.Empty(t, answer(t, r, "connected"))
	}
	for i, c := range parts {
		assert.NoError(t, in[i].Close()) // so that all parts end together
		_, err := io.Copy(io.Discard, out[i])
		assert.NoError(t, err)
		assert.NoError(t, c.Wait())
	}
}

// answer waits for a line of a part that begins with word, and returns the rest of it.
func answer(t *testing.T, r *bufio.Reader, word string) string {
	for {
		line, err := r.ReadString('\n')
		require.NoError(t, err, "the part ended before it was %s: %s", word, line)
		if rest, ok := strings.CutPrefix(line, word); ok {
			return strings.TrimSpace(rest)
		}
	}
}

// TestPartOfManyRanks is one process of TestManyRanksAtOnce.
func TestPartOfManyRanks(t *testing.T) {
	var part int
	if _, err := fmt.Sscan(os.Getenv(partVariable), &part); err != nil {
		t.Skip("a part of TestManyRanksAtOnce")
	}
	const each = manyRanks / manyProcesses
	nodes := make([]*node, manyRanks)
	for r := range nodes {
		nodes[r] = &node{id: tcp.Identity{Cluster: "test", Name: fmt.Sprintf("n/%d", r), Nonce: uint64(100 + r)}}
	}
	mine := nodes[part*each : (part+1)*each]
	var at []string
	for _, n := range mine {
		n.connector = tcp.NewConnector(n.id)
		n.connector.Streams = tcp.MaxStreams
		var err error
		n.listener, err = tcp.Listen(t.Context(), "127.0.0.1:0", n.id, n.connector)
		require.NoError(t, err)
		defer func() { assert.NoError(t, n.listener.Close()) }()
		at = append(at, n.addr().String())
	}
	fmt.Println("\nlistening", strings.Join(at, " "))
	in := bufio.NewReader(os.Stdin)
	all, err := in.ReadString('\n')
	require.NoError(t, err)
	members := make([]collective.Member, manyRanks)
	for r, a := range strings.Fields(all) {
		members[r] = collective.Member{Name: nodes[r].id.Name, Nonce: nodes[r].id.Nonce, Addrs: []netip.AddrPort{netip.MustParseAddrPort(a)}}
	}
	vs := make([]collective.View, each)
	for i := range vs {
		vs[i] = collective.View{Job: 7, Epoch: 1, Self: part*each + i, Members: members}
	}
	ctx, cancel := context.WithTimeout(t.Context(), connectTime)
	defer cancel()
	made := connectAll(t, ctx, mine, vs)
	checkBarriers(t, vs, made)
	fmt.Println("\nconnected")
	_, _ = io.Copy(io.Discard, in)
}
