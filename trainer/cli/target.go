package cli

import (
	"fmt"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// targetUsage is the usage of --until.
const targetUsage = "end after the first evaluation that reaches `METRIC=VALUE`, such as accuracy=.95 or loss=.1 (default train for all steps)"

// targetText returns the line about --until below a result. A step of servers that do not
// wait is an update.
func targetText(e *event.Target, updates bool) string {
	if !e.Reached {
		return fmt.Sprintf("target: %s has not reached %v", e.Metric, e.Target)
	}
	unit := "steps"
	if updates {
		unit = "updates"
	}
	return fmt.Sprintf("target: %s %.4f reached %v after %d %s, %d samples and %.2f s", e.Metric, e.Value, e.Target, e.Step, unit, e.Samples, e.Seconds)
}
