package nn

// A Batch is the input of one step. The model does not change it, and reads it only
// during the call that receives it.
type Batch struct {
	X      Tensor
	Labels Buffer // int32, the class of each row
}

// Rows returns the number of rows of X.
func (b Batch) Rows() int { return b.X.Rows() }

// Counts holds named sums over rows. Adding the Counts of two batches, or of two workers,
// gives the Counts of both together.
type Counts map[string]float64

// The names a classifier uses in Counts.
const (
	CountRows    = "rows"    // rows seen
	CountCorrect = "correct" // rows whose most probable class is the label
	CountLoss    = "loss"    // sum of the loss over rows
)

// A Model is what a trainer trains: layers with a loss. It belongs to one goroutine at a
// time.
type Model interface {
	// Params returns the parameters, the same on every call.
	Params() *Params
	// Learn adds to Params().Grads the gradient of the loss summed over rows. The caller
	// zeroes Grads before the first batch of a step. Learn returns that sum in one
	// element, which the next Learn overwrites, and the weight to divide by to get a
	// mean. It recycles the backend's temporary memory when it starts. An error means
	// that the batch is invalid; the gradients are then unchanged.
	Learn(p *Pass, b Batch) (loss Buffer, weight int, err error)
	// Score adds its counts for the batch to c. It never applies dropout, whatever
	// p.Train says, and recycles temporary memory like Learn.
	Score(p *Pass, b Batch, c Counts) error
}
