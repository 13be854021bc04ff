package nn

// A Batch holds rows of one type with their classes: the input of a Classifier or a
// PositionClassifier. The model does not change it, and reads it only during the call
// that receives it.
type Batch struct {
	X      Tensor
	Labels Buffer // int32, the class of each row or of each position
}

// Rows returns the number of rows of X.
func (b Batch) Rows() int { return b.X.Rows() }

// Counts holds named sums over rows. Adding the Counts of two batches, or of two workers,
// gives the Counts of both together.
type Counts map[string]float64

// Names in Counts. Every Model counts CountRows and CountLoss, so that the mean loss can
// be compared between models. Those of a PositionClassifier count positions.
const (
	CountRows    = "rows"    // rows seen
	CountLoss    = "loss"    // sum of the loss over rows
	CountCorrect = "correct" // rows whose most probable class is the label; of a Classifier
	CountEntropy = "entropy" // sum of the cross-entropy, if a Classifier has another loss
)

// A Model learns from batches of type B: layers with a loss. It belongs to one goroutine
// at a time.
type Model[B any] interface {
	// Params returns the parameters, the same on every call.
	Params() *Params
	// Learn adds to Params().Grads the gradient of the loss summed over rows. The caller
	// zeroes Grads before the first batch of a step. Learn returns that sum in one
	// element, which the next Learn overwrites, and the weight to divide by to get a
	// mean. It recycles the backend's temporary memory when it starts. An error means
	// that the batch is invalid; the gradients are then unchanged.
	Learn(p *Pass, b B) (loss Buffer, weight int, err error)
	// Score adds its counts for the batch to c. It never applies dropout, whatever
	// p.Train says, and recycles temporary memory like Learn.
	Score(p *Pass, b B, c Counts) error
	// CountNames returns the names that Score uses in Counts, the same on every call.
	CountNames() []string
}

// A Weigher is a Model whose rows do not weigh 1 each.
type Weigher interface {
	// RowWeight returns the weight of every row in Learn.
	RowWeight() int
}
