package calibration

import (
	"fmt"
	"time"
)

// A Meter measures. In a job it is the ranks of a host, each with its own.
type Meter interface {
	// Costs measures what waiting costs.
	Costs() (Costs, error)
	// Measure makes the call of a trial. All ranks get the same answers.
	Measure(t Trial) (Measurement, error)
}

// A Measurement is the result of a trial.
type Measurement struct {
	Took      time.Duration // on the slowest rank
	Elapsed   time.Duration // since the Meter was made
	Disturbed bool          // other load slowed the call, or two ranks were on one core, although each could have its own
}

// A Source says where choices are from.
type Source uint8

// The sources.
const (
	FromDefault Source = iota
	FromStore
	FromTrials
)

// A Report says what was chosen.
type Report struct {
	Choices Choices       `json:"choices"`
	Ranks   int           `json:"ranks"` // on the host; 0 if there is no report
	Source  Source        `json:"source"`
	Lasting bool          `json:"lasting"` // FromTrials: see Search.Lasting
	Done    int           `json:"done"`    // FromTrials: see Search.Done
	Took    time.Duration `json:"took"`    // FromTrials
}

// String returns the report on one line.
func (r Report) String() string {
	how := "default"
	switch {
	case r.Source == FromStore:
		how = "cached"
	case r.Source == FromTrials && r.Lasting && r.Done < Experiments:
		how = fmt.Sprintf("measured in %v, and the next job measures more", r.Took.Round(time.Millisecond/10))
	case r.Source == FromTrials && r.Lasting:
		how = fmt.Sprintf("measured in %v", r.Took.Round(time.Millisecond/10))
	case r.Source == FromTrials:
		how = fmt.Sprintf("measured in %v under other load, so not cached", r.Took.Round(time.Millisecond/10))
	}
	return fmt.Sprintf("%s (%s)", r.Choices, how)
}

// Run makes trial calls until the Search ends.
func Run(m Meter, s Setting) (r Report, err error) {
	if s.Costs, err = m.Costs(); err != nil {
		return r, err
	}
	search := NewSearch(s)
	for {
		trial, more := search.Next(r.Took)
		if !more {
			break
		}
		result, err := m.Measure(trial)
		if err != nil {
			return r, err
		}
		r.Took = result.Elapsed
		search.Measured(result)
	}
	r.Choices, r.Source, r.Lasting, r.Done = search.Choices(), FromTrials, search.Lasting(), search.Done()
	return r, nil
}
