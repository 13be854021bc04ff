//go:build unix

package launch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

const (
	envSelf  = "LAUNCH_TEST_SELF"  // address to listen on
	envPeers = "LAUNCH_TEST_PEERS" // addresses to dial, separated by spaces
	envTime  = "LAUNCH_TEST_TIME"  // how long to send
	envNodes = "LAUNCH_TEST_NODES" // number of nodes to create
	envLink  = "LAUNCH_TEST_LINK"  // and their link rate
)

// meet connects to every peer, accepts a connection from every peer, and prints the
// addresses it saw.
func meet() int {
	peers := strings.Fields(os.Getenv(envPeers))
	l, err := net.Listen("tcp", os.Getenv(envSelf))
	if err != nil {
		panic(err)
	}
	failed := make(chan error, len(peers))
	for _, addr := range peers {
		go func() { _, err := dial(addr); failed <- err }()
	}
	var seen []string
	for range peers {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		seen = append(seen, netip.MustParseAddrPort(conn.RemoteAddr().String()).Addr().String())
	}
	for range peers {
		if err := <-failed; err != nil {
			panic(err)
		}
	}
	slices.Sort(seen)
	space, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		panic(err)
	}
	fmt.Println("pid", os.Getpid())
	fmt.Println("space", space)
	fmt.Println("seen", strings.Join(seen, ","))
	return 0
}

// dial connects to a process that may not have started yet.
func dial(addr string) (net.Conn, error) {
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for end := time.Now().Add(long); ; <-retry.C {
		conn, err := net.DialTimeout("tcp", addr, long)
		if err == nil || time.Now().After(end) {
			return conn, err
		}
	}
}

// send writes to the first peer for the given time.
func send() int {
	period, err := time.ParseDuration(os.Getenv(envTime))
	if err != nil {
		panic(err)
	}
	conn, err := dial(os.Getenv(envPeers))
	if err != nil {
		panic(err)
	}
	for buf, end := make([]byte, 256<<10), time.Now().Add(period); time.Now().Before(end); {
		if _, err := conn.Write(buf); err != nil {
			panic(err)
		}
	}
	return 0
}

// receive reads from one sender, and prints the number of bytes and the seconds from the
// first to the last.
func receive() int {
	l, err := net.Listen("tcp", os.Getenv(envSelf))
	if err != nil {
		panic(err)
	}
	conn, err := l.Accept()
	if err != nil {
		panic(err)
	}
	buf := make([]byte, 256<<10)
	first, err := conn.Read(buf)
	if err != nil {
		panic(err)
	}
	begin := time.Now()
	rest, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, conn, buf)
	if err != nil {
		panic(err)
	}
	fmt.Println("bytes", int64(first)+rest)
	fmt.Println("seconds", time.Since(begin).Seconds())
	return 0
}

// networker creates a network with a worker in each node, and keeps it until it
// is killed.
func networker() int {
	n, err := network(context.Background())
	if err != nil {
		panic(err)
	}
	j := launch.Start(context.Background(), launch.Options{})
	for i := range n.Len() {
		_, err := j.Run(n.Command(i, launch.Command{
			Path: os.Args[0], Env: []string{envPart + "=printer"},
			Stdout: func(line []byte) { fmt.Println(string(line)) },
		}))
		if err != nil {
			panic(err)
		}
	}
	j.Wait()
	return 0
}

// printer prints its pid and runs until it is killed.
func printer() int {
	fmt.Println(os.Getpid())
	_, _ = io.Copy(io.Discard, os.NewFile(3, "lifeline"))
	return 0
}

// builder creates and closes a network. Its exit code is 4 if this user cannot
// create one.
func builder() int {
	n, err := network(context.Background())
	switch {
	case errors.Is(err, launch.ErrNoNamespaces):
		fmt.Println(err)
		return 4
	case err != nil:
		fmt.Println(err)
		return 1
	}
	if err := n.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func network(ctx context.Context) (*launch.Network, error) {
	nodes, err := strconv.Atoi(os.Getenv(envNodes))
	if err != nil {
		return nil, err
	}
	link, err := launch.ParseRate(os.Getenv(envLink))
	if err != nil {
		return nil, err
	}
	return launch.Namespaces(ctx, nodes, launch.NetworkOptions{Link: link})
}
