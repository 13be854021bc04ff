package nn

import "context"

// A Pacer is a Backend that can keep in its own memory what differs from one step
// to the next, so that a recording of whole steps needs nothing of the host when
// it is repeated.
type Pacer interface {
	Backend
	// NewPace returns a Pace that stands before step 0 and row 0. It lives until
	// Close.
	NewPace(c PaceConfig) Pace
}

// PaceConfig is what a Pace needs to know.
type PaceConfig struct {
	// Random is the source of dropout masks; the Pace sets its Step.
	Random Stream
	// Hyper returns the hyper-parameters of a step. It is called on the host, in
	// float64 where it likes, for steps to come, and always gives the same for a
	// step.
	Hyper func(step int) [HyperLen]float32
	// Keep is of how many steps the losses are kept; 0 is DefaultKeep. A recording
	// has fewer steps.
	Keep int
}

// DefaultKeep is how many losses a Pace keeps where PaceConfig does not say.
const DefaultKeep = 256

// A Pace is where a training is. Its methods but Seek and Losses may be called
// inside Record; what they did is then repeated, each time for the step that has
// come. A step reads its batch by Gather, draws from Random, updates by Hyper, and
// ends with Tick.
type Pace interface {
	// Seek makes step the next one, and first the place of its first row in the
	// order of rows.
	Seek(step, first int)
	// Step is the next step: how many Ticks were queued since step 0.
	Step() int
	// Random is PaceConfig.Random of the next step, for a Pass. Layers hand it on as
	// it is.
	Random() Stream
	// Hyper is where the hyper-parameters of the step are.
	Hyper() Buffer
	// Gather sets row i of y to row order[first+i] of data, which has y's type,
	// either, and rows of the given width. order is int32.
	Gather(y, data, order Buffer, width int)
	// GatherBytes is Gather from rows of bytes, of which each int32 of data has four
	// as they lie in memory; it divides them by divisor.
	GatherBytes(y, data, order Buffer, width int, divisor float32)
	// GatherLabelled is GatherBytes of y from data and Gather of labels from
	// classes, of one int32 a row.
	GatherLabelled(y, data, labels, classes, order Buffer, width int, divisor float32)
	// Tick ends a step of so many rows, whose loss is one float32.
	Tick(loss Buffer, rows int)
	// Losses waits for the steps from step on, as many as dst has, or for ctx, and
	// sets dst to their losses. It does not wait for what was queued after the
	// recording that has the last of them. Steps that were not queued, or that are
	// more than PaceConfig.Keep behind, are an error.
	Losses(ctx context.Context, step int, dst []float32) error
}
