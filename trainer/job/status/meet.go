package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// Meet waits until a process of the job answers, for timeout at most. The error says why
// none did.
func Meet(ctx context.Context, w *cluster.Watcher, job Job, timeout time.Duration) error {
	if err := job.AllStopped(job.Seeds); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := w.Meet(ctx)
	var waited *membership.WaitError
	if !errors.As(err, &waited) {
		return err
	}
	if len(waited.Waiting.Seeds) == 0 {
		return fmt.Errorf("no answer within %v from %s: a firewall may block it, or the address is wrong (ringtrain doctor finds out)",
			timeout, strings.Join(job.Seeds, ", "))
	}
	var why []string
	for _, s := range waited.Waiting.Seeds {
		why = append(why, s.String())
	}
	return fmt.Errorf("no answer within %v: %s", timeout, strings.Join(why, "; "))
}

// Inspect marks the processes of r on this machine that are suspended.
func (j *Job) Inspect(r *query.Roll) {
	for i := range r.Members {
		_, s := j.State(r.Members[i].Node, r.Members[i].Local)
		r.Members[i].Stopped = s == launch.Stopped
	}
}
