package launch

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// quiet is how long after a worker's end its pipes may stay silent before
	// they are given up: a process that left the worker's group can hold the
	// other end open for ever.
	quiet = time.Second
	// afterlife bounds what is read after the end, for the same reason. It is
	// the most a pipe can hold on Linux, so nothing the worker wrote is lost.
	afterlife = 1 << 20
)

// output reads what one worker writes, and calls back line by line.
type output struct {
	ended   atomic.Bool // the worker has exited
	readers sync.WaitGroup
	pipes   []*os.File

	mu   sync.Mutex // held during callbacks, so that they are never concurrent
	tail tail
}

// follow starts to read pipe, which the output then owns.
func (o *output) follow(pipe *os.File, maxLine int, emit func(line []byte)) {
	o.pipes = append(o.pipes, pipe)
	o.readers.Go(func() {
		defer pipe.Close()
		lines := splitter{max: maxLine, emit: func(line []byte) {
			o.mu.Lock()
			defer o.mu.Unlock()
			emit(line)
		}}
		o.copy(pipe, lines.write)
		lines.flush()
	})
}

func (o *output) copy(pipe *os.File, write func([]byte)) {
	buf := make([]byte, 32<<10)
	for late := 0; late < afterlife; {
		n, err := pipe.Read(buf)
		write(buf[:n])
		if err != nil {
			return // end of file, or silence after the worker's end
		}
		if o.ended.Load() {
			late += n
			// Where pipes know no deadlines (Windows) the job object has ended
			// whoever could hold the other end.
			_ = pipe.SetReadDeadline(time.Now().Add(quiet))
		}
	}
}

// drain reads to the end what an exited worker left behind, and returns when
// every callback has.
func (o *output) drain() {
	o.ended.Store(true)
	for _, pipe := range o.pipes {
		_ = pipe.SetReadDeadline(time.Now().Add(quiet)) // as above; or it is closed already
	}
	o.readers.Wait()
}

// note adds a line of the launcher's own to what is kept of stderr.
func (o *output) note(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail.add([]byte(line))
}

// A tail keeps the last lines that were added to it.
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
