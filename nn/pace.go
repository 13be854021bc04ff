package nn

import "context"

// A Pacer is a Backend that can keep the values that change from step to step in
// its own memory. A recording of whole steps then needs nothing from the host
// when it is repeated.
type Pacer interface {
	Backend
	// NewPace returns a Pace at step 0 and row 0. It lives until Close.
	NewPace(c PaceConfig) Pace
}

// PaceConfig configures a Pace.
type PaceConfig struct {
	// Random is the source of dropout masks; the Pace sets its Step.
	Random Stream
	// Hyper returns the hyper-parameters of a step. It runs on the host, also for future
	// steps, and must always return the same values for the same step.
	Hyper func(step int) [HyperLen]float32
	// Keep is the number of steps whose losses are kept; 0 means DefaultKeep. It must
	// exceed the number of steps in a recording.
	Keep int
}

// DefaultKeep is the number of losses a Pace keeps if PaceConfig.Keep is 0.
const DefaultKeep = 256

// A Pace is the position of a training run: the next step and its first row. All methods
// except Seek and Losses may be called inside Record. A repetition of the recording then
// performs them for the step that is next at that time. A step reads its batch with
// Gather, draws from Random, updates with Hyper and ends with Tick.
type Pace interface {
	// Seek makes step the next one, with its first row at index first of
	// the order of rows.
	Seek(step, first int)
	// Step returns the next step: the number of Ticks queued since step 0.
	Step() int
	// Random returns PaceConfig.Random for the next step, for use in a Pass. Layers must
	// pass it on unchanged.
	Random() Stream
	// Hyper returns the Buffer with the hyper-parameters of the step.
	Hyper() Buffer
	// Gather sets row i of y to row order[first+i] of data, for rows of the given width.
	// y and data have the same type, float32 or int32; order is int32.
	Gather(y, data, order Buffer, width int)
	// GatherBytes is Gather from rows of bytes, packed four to an int32 of data in memory
	// order. It divides each byte by divisor.
	GatherBytes(y, data, order Buffer, width int, divisor float32)
	// GatherLabelled does GatherBytes of y from data, and Gather of labels from classes
	// with one int32 per row.
	GatherLabelled(y, data, labels, classes, order Buffer, width int, divisor float32)
	// Tick ends a step that used the given number of rows. Its loss is one float32.
	Tick(loss Buffer, rows int)
	// Losses sets dst to the losses of len(dst) steps, starting with step. It waits for
	// those steps, or until ctx ends, but not for work queued after the recording that
	// contains the last of them. Asking for a step that was not queued, or that is more
	// than PaceConfig.Keep steps old, is an error.
	Losses(ctx context.Context, step int, dst []float32) error
}

// A Committer is a Pace that can withhold updates without the host. It is for Backends whose
// host learns too late that a sum over the ranks was interrupted.
//
// After the sums of a step's gradients, each rank calls Vote, the votes are summed over the
// ranks, and each rank calls Commit before it updates. Commit withholds the update unless all
// ranks have voted for this step: until Tick no update changes anything, and from then on Vote
// votes against every step.
type Committer interface {
	Pace
	// Vote sets votes, VoteLen float32s, to this rank's vote on the step. Votes for different
	// steps differ.
	Vote(votes Buffer)
	// Commit takes the sum of all votes. There are at most MaxVotes ranks.
	Commit(votes Buffer, ranks int)
	// Withheld returns the first step before end whose update was withheld, if there is one.
	// Losses must have returned those steps.
	Withheld(end int) (step int, ok bool)
}

// VoteLen is the length of a vote.
const VoteLen = 8

// MaxVotes is the number of votes up to which sums of them are exact in float32.
const MaxVotes = 1 << 16
