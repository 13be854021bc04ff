package catalog

import (
	"context"
	"iter"

	"github.com/ringtrain/ringtrain/nn"
)

// A Generative model is a Stored that can also make up what it has learned from.
type Generative interface {
	Stored
	// Generator makes the model on b, with initial weights.
	Generator(b nn.Backend) (Generator, error)
}

// A Generator continues a prompt.
type Generator interface {
	Params() *nn.Params
	// Generate returns the prompt and its continuation, piece by piece. The pieces depend on
	// the weights and o only, if matrix products have the same bits. An error returned at
	// once is the user's mistake, about the prompt.
	Generate(ctx context.Context, o GenerateOptions) (iter.Seq2[string, error], error)
}

// GenerateOptions say what a Generator generates.
type GenerateOptions struct {
	Prompt      string
	Length      int     // of the continuation, in pieces
	Temperature float64 // divides the logarithms of probabilities; 0: always the most probable piece
	TopK        int     // choose among this many most probable pieces; 0: among all
	Seed        uint64
}
