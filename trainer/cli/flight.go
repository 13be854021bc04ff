package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

// askRecord is what "status" asks workers; the answer is a rankAnswer.
const askRecord = "flight record"

// rankAnswer is what a worker answers.
type rankAnswer struct {
	PID    int           `json:"pid"`
	Record *trace.Record `json:"record"` // null while it has no group
}

// flights gives a worker's flight record to whoever asks, and saves it when
// something goes wrong. Before there is a group there is no record.
type flights struct {
	group  atomic.Pointer[collective.Group]
	dir    string // of --out; "" is the folder for temporary files
	stderr io.Writer
}

// answer answers a question that came over gossip.
func (f *flights) answer(question []byte) []byte {
	if string(question) != askRecord {
		return nil
	}
	a := rankAnswer{PID: os.Getpid()}
	if g := f.group.Load(); g != nil {
		r := trace.NewRecord(g.Flight())
		text, err := r.Encode(membership.MaxAnswer - 100) // for what is around it
		if err != nil || json.Unmarshal(text, &r) != nil {
			return nil
		}
		a.Record = &r
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil
	}
	return text
}

// dump saves the record, and says where and what is in it, in one line.
func (f *flights) dump() {
	g := f.group.Load()
	if g == nil {
		return
	}
	r := trace.NewRecord(g.Flight())
	dir := f.dir
	if dir == "" {
		dir = os.TempDir()
	}
	path := filepath.Join(dir, fmt.Sprintf("flight-%s-%d.json", r.Job, r.Rank))
	where := "flight record: " + path
	if err := r.Save(path); err != nil {
		where = err.Error()
	}
	fmt.Fprintf(f.stderr, "%s; %s\n", r.Summary(), where)
}

// onQuit saves the record at SIGQUIT, before the Go runtime does what it does
// then: it prints all goroutines and ends the process. end stops that.
func (f *flights) onQuit() (end func()) {
	signals, quit := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGQUIT)
	var done sync.WaitGroup
	done.Go(func() {
		select {
		case <-quit:
		case <-signals:
			f.dump()
			signal.Reset(syscall.SIGQUIT)
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Signal(syscall.SIGQUIT)
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(quit)
		done.Wait()
	}
}
