package catalog

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// A Seat is a rank's place in a run, and how it takes its rows.
type Seat struct {
	Backend    nn.Backend
	Rank, Size int
	Micro      int    // micro-batches of a step
	Batch      int    // rows of a micro-batch
	EvalBatch  int    // test rows at a time
	Seed       uint64 // of initial weights and of the order of rows
	Resident   bool   // the training rows are to be in the memory of Backend, an nn.Pacer
	Tests      Tests
}

// Tests says which ranks have test rows.
type Tests uint8

// The ways to distribute test rows.
const (
	// ShareTests gives each rank a share.
	ShareTests Tests = iota
	// FirstTests gives rank 0 all rows. The others wait while it evaluates.
	FirstTests
	// AloneTests gives rank 0 all rows, and the others do not know of evaluations; see
	// trainer.Asynchronous.
	AloneTests
	// NoTests gives no rank any, so there are no evaluations.
	NoTests
)

// withTest gives t this seat's share of a number of test rows.
func withTest[B trainer.Batch](t *trainer.ModelTask[B], s Seat, rows int, stage func() data.Stage[B]) {
	rank, size := s.Rank, s.Size
	switch {
	case s.Tests == NoTests, s.Tests == AloneTests && rank > 0:
		return
	case s.Tests == FirstTests && rank > 0:
		rows = 0 // it counts none, under the names that rank 0 has
	}
	if s.Tests != ShareTests {
		rank, size = 0, 1
	}
	t.Test = data.NewPart(stage(), rows, rank, size, s.EvalBatch)
}

// withTraining returns t with this seat's share of a number of training rows. stage makes
// room for the rows of a micro-batch. resident places all rows in the memory of the
// backend; it is called only if s asks for that.
func withTraining[B trainer.Batch](t *trainer.ModelTask[B], s Seat, rows int, stage func() data.Stage[B], resident func(*data.Sampler, nn.Pacer) *data.Resident[B]) (trainer.Task, error) {
	for k := range s.Micro {
		sampler, err := data.NewSampler(rows, s.Batch, s.Rank*s.Micro+k, s.Size*s.Micro, s.Seed)
		if err != nil {
			return nil, err
		}
		if s.Resident {
			return trainer.NewResident(t, resident(sampler, s.Backend.(nn.Pacer))), nil
		}
		t.Train = append(t.Train, data.NewFeed(stage(), sampler))
	}
	return t, nil
}
