package nn

// A Batch is the input of one step. The model does not change it and reads it
// only during the call it is given to.
type Batch struct {
	X      Tensor
	Labels Buffer // int32, the class of each row
}

// Rows returns the number of rows of X.
func (b Batch) Rows() int { return b.X.Rows() }

// Counts are named sums over rows: adding the Counts of two batches, or of two
// workers, gives the Counts of both.
type Counts map[string]float64

// What a classifier counts.
const (
	CountRows    = "rows"    // rows seen
	CountCorrect = "correct" // rows whose most probable class is the label
	CountLoss    = "loss"    // sum of the loss over rows
)

// A Model is what a trainer trains: layers with a loss. A Model belongs to one
// goroutine at a time.
type Model interface {
	// Params returns the parameters, always the same.
	Params() *Params
	// Learn adds the gradient of the sum over rows of the loss to
	// Params().Grads, which the caller zeroes before the first batch of a step,
	// and returns that sum, one element that the next Learn overwrites, and the
	// number by which the caller divides to get a mean. It recycles the
	// backend's temporary memory when it starts. An error is about the batch and
	// leaves gradients as they were.
	Learn(p *Pass, b Batch) (loss Buffer, weight int, err error)
	// Score adds what it measures on the batch to c, without dropout whatever
	// p.Train says. It recycles temporary memory like Learn.
	Score(p *Pass, b Batch, c Counts) error
}
