package bench

import (
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// Events returns the kinds of events that only measurements have.
func Events() event.Table {
	return event.TableOf(
		func() event.Event { return new(Calibrated) },
		func() event.Event { return new(RowMeasured) },
		func() event.Event { return new(SizeTuned) },
		func() event.Event { return new(TableSaved) },
		func() event.Event { return new(TrialBegins) },
		func() event.Event { return new(TrialMeasured) },
	)
}

// Calibrated reports how the ranks of a machine reduce in memory that they share.
type Calibrated struct {
	Report calibration.Report `json:"report"`
}

// Kind is part of event.Event.
func (*Calibrated) Kind() string { return "calibrated" }

// RowMeasured reports one row of "bench collective".
type RowMeasured struct {
	Row Row `json:"row"`
}

// Kind is part of event.Event.
func (*RowMeasured) Kind() string { return "row" }

// SizeTuned reports the measurements of one size.
type SizeTuned struct {
	Tuned Tuned `json:"tuned"`
}

// Kind is part of event.Event.
func (*SizeTuned) Kind() string { return "tuned_size" }

// TableSaved is written when a table of the fastest algorithms is on disk.
type TableSaved struct {
	Path string `json:"path"`
}

// Kind is part of event.Event.
func (*TableSaved) Kind() string { return "tune_saved" }

// TrialBegins tells the launcher of a trial that the training is about to begin.
type TrialBegins struct{}

// Kind is part of event.Event.
func (*TrialBegins) Kind() string { return "measuring" }

// TrialMeasured reports the result of a trial.
type TrialMeasured struct {
	Params int   `json:"params"`
	Lens   []int `json:"param_lengths"`
	Locals []int `json:"locals"` // by rank: which of this machine's workers it is
	Trial  Trial `json:"trial"`
}

// Kind is part of event.Event.
func (*TrialMeasured) Kind() string { return "measured" }
