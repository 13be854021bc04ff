// Command streams measures what plain TCP carries between hosts, to compare with "ringtrain
// bench collective --hosts netns": each of N processes, in a network namespace of its own,
// sends to the next one as fast as it can, all at the same time.
//
//	streams [-nodes N] [-link RATE] [-time D]
//
// It prints the payload that the slowest and the average link carried, in GB/s, the unit of
// busbw. It needs root, and the programs ip and tc. The exit code is 1 if something broke.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

const (
	port     = 7000
	piece    = 256 << 10              // bytes of a write
	warmup   = 300 * time.Millisecond // until streams have found their rate
	dialling = 20 * time.Second       // for all processes to start
	retry    = 5 * time.Millisecond
)

func main() {
	nodes := flag.Int("nodes", 4, "number of hosts")
	link := flag.String("link", "1gbit", "rate of each link")
	length := flag.Duration("time", time.Second, "how long to measure")
	to := flag.String("to", "", "address to send to; for the processes that this one starts")
	flag.Parse()
	err := error(nil)
	if *to != "" {
		err = stream(*to, *length, os.Stdout)
	} else {
		err = measure(*nodes, *link, *length, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(1)
	}
}

// measure starts a process in each namespace, and prints what they received.
func measure(nodes int, link string, length time.Duration, w io.Writer) error {
	ctx := context.Background()
	rate, err := launch.ParseRate(link)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	network, err := launch.Namespaces(ctx, nodes, launch.NetworkOptions{Link: rate})
	if err != nil {
		return err
	}
	defer func() { _ = network.Close() }()
	var mu sync.Mutex
	var rates []float64
	job := launch.Start(ctx, launch.Options{})
	for i := range nodes {
		next := netip.AddrPortFrom(network.Addr((i+1)%nodes), port)
		c := launch.Command{Path: self, Args: []string{"-time", length.String(), "-to", next.String()}, Stdout: func(line []byte) {
			mu.Lock()
			defer mu.Unlock()
			if x, err := strconv.ParseFloat(string(line), 64); err == nil {
				rates = append(rates, x)
			}
		}}
		if _, err := job.Run(network.Command(i, c)); err != nil {
			job.Stop(err)
			break
		}
	}
	if err := job.Wait().Err(); err != nil {
		return err
	}
	if len(rates) != nodes {
		return fmt.Errorf("%d of %d processes reported a rate", len(rates), nodes)
	}
	sum := 0.
	for _, x := range rates {
		sum += x
	}
	_, err = fmt.Fprintf(w, "%d streams on links of %s: slowest %.4f GB/s, mean %.4f GB/s\n", nodes, link, slices.Min(rates), sum/float64(nodes))
	return err
}

// stream sends to an address while it receives from whoever connects, and writes the rate
// at which it received, in GB/s.
func stream(to string, length time.Duration, w io.Writer) error {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	out, err := dial(to)
	if err != nil {
		return err
	}
	in, err := listener.Accept()
	if err != nil {
		return err
	}
	// The others may measure for a little longer.
	end := time.Now().Add(2*warmup + length)
	if err := out.SetWriteDeadline(end); err != nil {
		return err
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		b := make([]byte, piece)
		for err := error(nil); err == nil; {
			_, err = out.Write(b)
		}
	})
	rate, err := receive(in, length)
	sending.Wait()
	if err == nil {
		_, err = fmt.Fprintln(w, rate)
	}
	return err
}

// dial connects to a process that may not listen yet.
func dial(to string) (net.Conn, error) {
	tries := time.NewTicker(retry)
	defer tries.Stop()
	for end := time.Now().Add(dialling); ; <-tries.C {
		c, err := net.DialTimeout("tcp", to, time.Second)
		if err == nil || time.Now().After(end) {
			return c, err
		}
	}
}

// receive returns the rate at which data arrive after the warm-up, in bytes per nanosecond.
func receive(in net.Conn, length time.Duration) (float64, error) {
	b := make([]byte, piece)
	began, from, n := time.Now(), time.Time{}, 0
	for {
		got, err := in.Read(b)
		if err != nil {
			return 0, err
		}
		now := time.Now()
		switch {
		case from.IsZero() && now.Sub(began) > warmup:
			from = now
		case !from.IsZero():
			n += got
			if took := now.Sub(from); took > length {
				return float64(n) / float64(took), nil
			}
		}
	}
}
