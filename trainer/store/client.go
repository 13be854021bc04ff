package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// Times between attempts of a Client to reach its server.
const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
)

// maxIdle is the number of connections that a Client keeps for the next calls.
const maxIdle = 8

// defaultPatience is that of a ClientConfig without one.
const defaultPatience = time.Minute

// ClientConfig configures a Client.
type ClientConfig struct {
	Addr string      // HOST:PORT of the Server
	Key  *secret.Key // that of the Server, or nil
	// Patience is how long a call waits for the server, which may be about to be started,
	// or started again. The time in which bytes of a message move does not count. After a
	// third of it, a silent connection is replaced. Default 1 minute.
	Patience time.Duration
}

// A Client is a Store behind a Server. If the server goes away, calls wait until it is
// back.
type Client struct {
	config   ClientConfig
	identity *secret.Identity // nil without a key

	mu       sync.Mutex
	idle     []net.Conn
	sessions []token // the last of each session that has no update in progress
	closed   bool
}

// NewClient returns a Client, which connects in its first call. The caller closes it.
func NewClient(c ClientConfig) (*Client, error) {
	if host, port, err := net.SplitHostPort(c.Addr); err != nil || host == "" || port == "" || port == "0" {
		return nil, fmt.Errorf("the address of a store must be HOST:PORT, not %q", c.Addr)
	}
	if c.Patience <= 0 {
		c.Patience = defaultPatience
	}
	client := &Client{config: c}
	if c.Key != nil {
		id, err := c.Key.Identity(clientName, 0)
		if err != nil {
			return nil, err
		}
		client.identity = id
	}
	return client, nil
}

// Close closes the connections. Calls that begin later fail with ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.dropIdle()
	return nil
}

// Get implements Store.
func (c *Client) Get(ctx context.Context, key string) (Value, uint64, error) {
	if err := CheckKey(key); err != nil {
		return Value{}, 0, err
	}
	r, err := c.call(ctx, request{op: opGet, key: key})
	if err != nil {
		return Value{}, 0, err
	}
	v, err := DecodeValue(r.rest)
	if err != nil {
		return Value{}, 0, c.wrap(fmt.Errorf("the reply is malformed: %w", err))
	}
	return v, r.version, nil
}

// Set implements Store. If the connection breaks, it sends the update again, with the
// same token, so that the update takes effect once.
func (c *Client) Set(ctx context.Context, key string, v Value, version uint64) (uint64, error) {
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	if err := v.Check(); err != nil {
		return 0, err
	}
	t := c.begin()
	defer c.end(t)
	r, err := c.call(ctx, request{op: opSet, key: key, value: v, version: version, token: t})
	return r.version, err
}

// begin returns the token of an update, in a session that has no other.
func (c *Client) begin() (t token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.sessions) - 1; n >= 0 {
		t = c.sessions[n]
		c.sessions = c.sessions[:n]
	} else {
		_, _ = rand.Read(t.session[:]) // never fails, see crypto/rand
	}
	t.call++
	return t
}

// end lets other updates use the session.
func (c *Client) end(t token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions = append(c.sessions, t)
}

// Keys implements Store.
func (c *Client) Keys(ctx context.Context, prefix string) ([]string, error) {
	if len(prefix) > MaxKey {
		return nil, nil
	}
	return allKeys(func(after string) ([]string, error) {
		r, err := c.call(ctx, request{op: opKeys, key: prefix, after: after})
		if err != nil {
			return nil, err
		}
		keys, err := decodeKeys(r.rest)
		if err != nil || len(keys) > pageKeys || len(keys) > 0 && keys[0] <= after {
			return nil, c.wrap(fmt.Errorf("the reply is malformed"))
		}
		return keys, nil
	})
}

// call sends a request until there is a reply, patience ends or ctx ends.
func (c *Client) call(ctx context.Context, r request) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, c.wrap(err)
	}
	message, left := r.encode(), c.config.Patience
	var last error // of an attempt that patience did not end
	for delay := firstRetry; ; delay = min(2*delay, lastRetry) {
		answer, waited, err := c.try(ctx, message, min(left, c.config.Patience/3))
		left -= waited
		switch {
		case err == nil:
			if err = answer.err(r); err != nil {
				return reply{}, c.wrap(err)
			}
			return answer, nil
		case errors.Is(err, ErrRefused):
			return reply{}, c.wrap(err)
		case errors.Is(err, ErrClosed):
			return reply{}, err
		case last == nil || left > 0:
			last = err
		}
		select {
		case <-time.After(min(delay, left)):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return reply{}, c.wrap(ctx.Err())
		}
		if left -= delay; left <= 0 {
			return reply{}, fmt.Errorf("no store answers at %s within %v: %w; start one with ringtrain store serve", c.config.Addr, c.config.Patience, clause(last))
		}
	}
}

// wrap adds the address of the store to an error.
func (c *Client) wrap(err error) error { return fmt.Errorf("store %s: %w", c.config.Addr, err) }

// try sends a request once, on an idle connection if there is one. It fails if no bytes move for
// the time limit, and returns for how long none have moved. If it fails, all idle connections are
// closed, because the server has probably gone.
func (c *Client) try(ctx context.Context, message []byte, limit time.Duration) (answer reply, waited time.Duration, err error) {
	last := time.Now()
	dialing, dialed := context.WithTimeout(ctx, limit)
	defer dialed()
	conn, err := c.connection(dialing)
	if err != nil {
		return reply{}, time.Since(last), err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(limit-time.Since(last), cancel)
	defer silence.Stop()
	stop := expireOnCancel(ctx, conn)
	answer, err = exchange(moving{conn, func() {
		last = time.Now()
		silence.Reset(limit)
	}}, message)
	if inTime := stop(); err != nil || !inTime {
		_ = conn.Close()
		c.dropIdle()
		return answer, time.Since(last), err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= maxIdle {
		_ = conn.Close()
	} else {
		c.idle = append(c.idle, conn)
	}
	return answer, time.Since(last), nil
}

// connection returns an idle connection or a new one.
func (c *Client) connection(ctx context.Context) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if n := len(c.idle) - 1; n >= 0 {
		conn := c.idle[n]
		c.idle = c.idle[:n]
		return conn, nil
	}
	c.mu.Unlock()
	conn, err := dial(ctx, c.config.Addr, c.identity)
	c.mu.Lock()
	return conn, err
}

func (c *Client) dropIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.idle {
		_ = conn.Close()
	}
	c.idle = nil
}

// exchange sends a message and reads the reply.
func exchange(conn net.Conn, message []byte) (reply, error) {
	if err := writeMessage(conn, message); err != nil {
		return reply{}, err
	}
	return readReply(conn, maxMessage)
}
