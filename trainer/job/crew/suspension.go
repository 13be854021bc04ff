package crew

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// suspendedEvery is how often a launcher looks whether its workers are suspended. Other
// machines give up a worker after 5 s of silence, and a worker that still runs reports that
// to its launcher. If none runs, nothing ends the launcher, which must say why it waits.
const suspendedEvery = 5 * time.Second

// suspension is what a launcher knows of suspended workers.
type suspension struct {
	looking   *time.Timer // calls lookForSuspension
	suspended bool        // all workers were, at the last look
	told      bool        // the user has been told
}

// watchSuspension begins to look.
func (l *launcher) watchSuspension() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looking = time.AfterFunc(suspendedEvery, l.lookForSuspension)
	l.timers = append(l.timers, l.looking)
}

// lookForSuspension tells the user if all workers are suspended at two looks in a row: a
// debugger may suspend them for a moment.
func (l *launcher) lookForSuspension() {
	l.mu.Lock()
	running := maps.Clone(l.running)
	l.mu.Unlock()
	var pids []string
	all := len(running) > 0
	for _, p := range running {
		all = all && launch.Identify(p.Pid()).State() == launch.Stopped
		pids = append(pids, fmt.Sprint(p.Pid()))
	}
	l.mu.Lock()
	tell := all && l.suspended && !l.told
	l.suspended, l.told = all, all && (l.told || tell)
	if !l.over {
		l.looking.Reset(suspendedEvery)
	}
	l.mu.Unlock()
	if tell {
		slices.Sort(pids)
		l.show.Log("", fmt.Appendf(nil, "warning: all processes of this job on this machine are suspended; kill -CONT %s resumes them", strings.Join(pids, " ")))
	}
}
