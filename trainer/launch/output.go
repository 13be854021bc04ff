package launch

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// quiet is how long a dead worker's pipes may stay silent before they are closed: a
	// process that left the worker's group can hold the other end open forever.
	quiet = time.Second
	// afterlife limits the number of bytes read after the end, for the same reason. No
	// pipe on Linux can hold more, so nothing that the worker wrote is lost.
	afterlife = 1 << 20
	// patience limits the time spent waiting for more after the end, for the same reason. The
	// worker's own output is in the pipe by then. The time that callbacks take does not count.
	patience = 10 * time.Second
)

// output reads what one worker writes, and calls back for each line.
type output struct {
	ended   atomic.Bool // the worker has exited
	readers sync.WaitGroup
	pipes   []*os.File

	mu   sync.Mutex // held during callbacks, so that they are never concurrent
	tail tail
}

// follow starts to read pipe, which output then owns.
func (o *output) follow(pipe *os.File, maxLine int, emit func(line []byte)) {
	o.pipes = append(o.pipes, pipe)
	o.readers.Go(func() {
		defer pipe.Close()
		lines := splitter{max: maxLine, emit: func(line []byte) {
			o.mu.Lock()
			defer o.mu.Unlock()
			emit(line)
		}}
		o.copy(pipe, patience, lines.write)
		lines.flush()
	})
}

// copy passes on what it reads from pipe. After the worker's end it waits for at most patience
// in all.
func (o *output) copy(pipe *os.File, patience time.Duration, write func([]byte)) {
	buf := make([]byte, 32<<10)
	waited := time.Duration(0)
	for late := 0; late < afterlife && waited < patience; {
		ended, begin := o.ended.Load(), time.Now()
		n, err := pipe.Read(buf)
		if ended {
			waited += time.Since(begin)
		}
		write(buf[:n])
		if err != nil {
			return // end of file, or silence after the worker's end
		}
		if o.ended.Load() {
			late += n
			// Pipes have no deadlines on Windows. There the job object has ended every
			// process that could hold the other end.
			_ = pipe.SetReadDeadline(time.Now().Add(quiet))
		}
	}
}

// drain reads the remaining output of an exited worker, and returns after all callbacks.
func (o *output) drain() {
	o.ended.Store(true)
	for _, pipe := range o.pipes {
		_ = pipe.SetReadDeadline(time.Now().Add(quiet)) // as above; fails if it is already closed
	}
	o.readers.Wait()
}

// note adds a line of the launcher's own to the stored stderr.
func (o *output) note(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail.add([]byte(line))
}

// A tail keeps the last lines added to it.
type tail struct {
	max   int
	lines []string
}

func (t *tail) add(line []byte) {
	if len(t.lines) == t.max {
		copy(t.lines, t.lines[1:])
		t.lines = t.lines[:t.max-1]
	}
	t.lines = append(t.lines, string(line))
}
