package crew

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

// AskRecord is the question that a worker answers with a RankAnswer, by gossip.
const AskRecord = "flight record"

// A RankAnswer is a worker's answer to AskRecord, as JSON.
type RankAnswer struct {
	PID    int           `json:"pid"`
	Record *trace.Record `json:"record"` // null while it has no group
}

// A flightRecorder answers requests for a worker's flight record, and saves the record
// when something goes wrong. Without a group there is no record.
type flightRecorder struct {
	group  atomic.Pointer[collective.Group]
	dir    string // of --out; "" means the directory for temporary files
	stderr io.Writer
}

// answer returns the answer to a question that came by gossip; nil if it is not AskRecord.
func (f *flightRecorder) answer(question []byte) []byte {
	if string(question) != AskRecord {
		return nil
	}
	var a struct {
		RankAnswer
		Record json.RawMessage `json:"record"` // hides that of RankAnswer
	}
	a.PID = os.Getpid()
	if g := f.group.Load(); g != nil {
		text, err := trace.NewRecord(g.Flight()).Encode(membership.MaxAnswer - 100) // leaves room for the rest of RankAnswer
		if err != nil {
			return nil
		}
		a.Record = text
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil
	}
	return text
}

// dump saves the record, and writes a summary and the file's path to stderr, on one line.
func (f *flightRecorder) dump() {
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
	if f.dir == "" {
		removeOldRecords(dir, maxFlightRecords)
	}
	fmt.Fprintf(f.stderr, "%s; %s\n", r.Summary(), where)
}

// maxFlightRecords is how many flight records stay in the directory for temporary files,
// which the user may never clean up.
const maxFlightRecords = 256

// removeOldRecords removes the oldest flight records of a directory, of any job, until
// at most most are left. Other users' files cannot be removed and stay.
func removeOldRecords(dir string, most int) {
	paths, _ := filepath.Glob(filepath.Join(dir, "flight-"+strings.Repeat("[0-9a-f]", 16)+"-*.json"))
	var records []fs.FileInfo
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			records = append(records, info)
		}
	}
	slices.SortFunc(records, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, old := range records[min(most, len(records)):] {
		_ = os.Remove(filepath.Join(dir, old.Name()))
	}
}

// onQuit saves the record at SIGQUIT, before the Go runtime prints all goroutines and
// ends the process. Call end to stop waiting for the signal.
func (f *flightRecorder) onQuit() (end func()) {
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
