package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// torch is PyTorch in its own process, scripts/gpu/baselines.py. It takes steps only on request,
// so that timings of both sides can alternate. Requests and replies are lines of JSON.
type torch struct {
	command []string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     io.Closer
	replies chan reply
	broken  error // why it no longer answers
	again   bool  // it was restarted because it took too long, and does not compile any more
	version string
	limits  limits
}

// A request asks baselines.py to list ways, to prepare one, or to take steps.
type request struct {
	Prepare string `json:"prepare,omitempty"` // the way to prepare, for Model and Numbers
	Model   string `json:"model,omitempty"`
	Numbers string `json:"numbers,omitempty"`
	Run     string `json:"run,omitempty"` // the way
	Steps   int    `json:"steps,omitempty"`
	List    string `json:"list,omitempty"` // the model whose ways to list; frees everything prepared
}

// A reply is the answer to a request, or an error.
type reply struct {
	Torch string   `json:"torch"` // the version, in the first message
	Ways  []string `json:"ways"`
	US    float64  `json:"us"`
	Error string   `json:"error"`
}

// limits are how long PyTorch may take to start, to prepare or compile a step, and to make
// steps.
type limits struct{ start, prepare, run time.Duration }

const endTime = 5 * time.Second

// Compiling takes longest. afterCompiling is reserved for later measurements. Compiling does
// not begin if less than leastToCompile remains.
const (
	afterCompiling = 45 * time.Second
	leastToCompile = 20 * time.Second
)

// openTorch starts PyTorch with a command.
func openTorch(ctx context.Context, command []string) (*torch, error) {
	t := &torch{command: command, limits: limits{start: 60 * time.Second, prepare: 60 * time.Second, run: 20 * time.Second}}
	return t, t.start(ctx)
}

func (t *torch) start(ctx context.Context) error {
	t.cmd = exec.CommandContext(ctx, t.command[0], t.command[1:]...)
	t.cmd.Stderr, t.cmd.WaitDelay = os.Stderr, time.Second
	t.replies, t.broken = make(chan reply), nil
	var err error
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	t.out = out
	if err := t.cmd.Start(); err != nil {
		return err
	}
	go t.read(ctx, out, t.replies)
	hello, err := t.await(ctx, t.limits.start)
	if err != nil {
		return errors.Join(err, t.close())
	}
	t.version = hello.Torch
	return nil
}

// read forwards replies until the process ends or no reply is awaited.
func (t *torch) read(ctx context.Context, out io.Reader, replies chan<- reply) {
	defer close(replies)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var r reply
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // compilers print too
		}
		select {
		case replies <- r:
		case <-ctx.Done():
			return
		}
	}
}

func (t *torch) await(ctx context.Context, limit time.Duration) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case r, open := <-t.replies:
		if !open {
			t.broken = errors.New("PyTorch's process ended")
			return reply{}, t.broken
		}
		if r.Error != "" {
			return reply{}, errors.New(r.Error)
		}
		return r, nil
	case <-ctx.Done():
		// A late reply would be mistaken for that of the next request.
		t.broken = fmt.Errorf("PyTorch did not answer in time: %w", context.Cause(ctx))
		return reply{}, t.broken
	}
}

func (t *torch) ask(ctx context.Context, r request, limit time.Duration) (reply, error) {
	if t.broken != nil {
		return reply{}, t.broken
	}
	if err := json.NewEncoder(t.in).Encode(r); err != nil {
		return reply{}, err
	}
	return t.await(ctx, limit)
}

// ways prepares PyTorch's ways to take a step. If one cannot be prepared, its run returns the
// reason. If PyTorch does not answer, perhaps because it compiles, it is restarted for the
// ways that need no compiling.
func (t *torch) ways(ctx context.Context, model, numbers string) []way {
	if t == nil {
		return nil
	}
	all := t.prepared(ctx, model, numbers)
	if t.broken != nil && !t.again {
		t.again = true
		_ = t.close()
		if err := t.start(ctx); err != nil {
			t.broken = err
		}
		all = t.prepared(ctx, model, numbers)
	}
	return all
}

func (t *torch) prepared(ctx context.Context, model, numbers string) (all []way) {
	list, err := t.ask(ctx, request{List: model, Numbers: numbers}, t.limits.prepare)
	if err != nil {
		fail := func(context.Context, int) (float64, error) { return 0, err }
		return []way{{"in any way", true, fail}}
	}
	for _, name := range list.Ways {
		refused := t.prepare(ctx, name, model, numbers)
		all = append(all, way{name, true, func(ctx context.Context, steps int) (float64, error) {
			if refused != nil {
				return 0, refused
			}
			r, err := t.ask(ctx, request{Run: name, Steps: steps}, t.limits.run)
			return r.US, err
		}})
	}
	return all
}

func (t *torch) prepare(ctx context.Context, name, model, numbers string) error {
	limit := t.limits.prepare
	if strings.HasPrefix(name, "torch.compile") {
		if end, bounded := ctx.Deadline(); bounded {
			limit = min(limit, time.Until(end)-afterCompiling)
		}
		if t.again || limit < min(leastToCompile, t.limits.prepare) {
			return errors.New("no time left to compile it")
		}
	}
	_, err := t.ask(ctx, request{Prepare: name, Model: model, Numbers: numbers}, limit)
	return err
}

// close ends the process, and kills it if it does not end in time. It also closes the output,
// which processes that it has started may still hold open.
func (t *torch) close() error {
	_ = t.in.Close() // makes it end
	limit := endTime
	if t.broken != nil {
		limit = 0
	}
	timer := time.AfterFunc(limit, func() {
		_ = t.cmd.Process.Kill()
		_ = t.out.Close()
	})
	defer timer.Stop()
	for range t.replies { // until its output ends
	}
	return t.cmd.Wait()
}
