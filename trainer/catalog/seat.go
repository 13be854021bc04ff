package catalog

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// A Seat is a rank's place in a training, and how it takes its rows.
type Seat struct {
	Backend    nn.Backend
	Rank, Size int
	Micro      int    // micro-batches of a step
	Batch      int    // rows of a micro-batch
	EvalBatch  int    // test rows at a time
	Seed       uint64 // of initial weights and of the order of rows
	Resident   bool   // the training rows are to be in the memory of Backend, an nn.Pacer
	FirstTests bool   // rank 0 has all test rows, see trainer.Asynchronous
}

// withTest gives t this seat's share of a number of test rows.
func withTest[B trainer.Batch](t *trainer.ModelTask[B], s Seat, rows int, stage func() data.Stage[B]) {
	rank, size := s.Rank, s.Size
	if s.FirstTests {
		size = 1
	}
	if rank < size {
		t.Test = data.NewPart(stage(), rows, rank, size, s.EvalBatch)
	}
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
