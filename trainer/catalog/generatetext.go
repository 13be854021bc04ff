package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// Generator implements Generative.
func (s *storedText) Generator(b nn.Backend) (Generator, error) {
	m, err := s.model(b, 0)
	return &textGenerator{characterModel: s.characterModel, model: m}, err
}

// A textGenerator draws one character after the other.
type textGenerator struct {
	characterModel
	model *nn.PositionClassifier
}

// Params implements Generator.
func (g *textGenerator) Params() *nn.Params { return g.model.Params() }

// Generate implements Generator. A piece is a character. It is drawn from what the model
// predicts after the last characters so far: as many as a row has, once there are enough.
func (g *textGenerator) Generate(ctx context.Context, o GenerateOptions) (iter.Seq2[string, error], error) {
	ids, err := g.encode(o.Prompt)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(o.Seed, 0))
	return func(yield func(string, error) bool) {
		for _, id := range ids {
			if !yield(string(g.vocabulary.Char(id)), nil) {
				return
			}
		}
		for range o.Length {
			id, err := g.next(ctx, ids, o, random)
			if err != nil {
				yield("", err)
				return
			}
			if ids = append(ids, id); !yield(string(g.vocabulary.Char(id)), nil) {
				return
			}
		}
	}, nil
}

// next draws the character after ids. A row that is not full ends in any character: a
// causal model does not see those after the last of ids.
func (g *textGenerator) next(ctx context.Context, ids []int32, o GenerateOptions, random *rand.Rand) (int32, error) {
	row := make([]int32, g.context)
	n := copy(row, ids[max(0, len(ids)-g.context):])
	probs, err := g.model.Predict(ctx, row)
	if err != nil {
		return 0, err
	}
	classes := g.vocabulary.Len()
	probs = probs[(n-1)*classes : n*classes]
	at := draw(probs[data.Unknown+1:], o.Temperature, o.TopK, random) // nothing is written as unknown
	if at < 0 {
		return 0, errors.New("no character has a probability: the weights are finite, but too large to compute with")
	}
	return int32(at) + data.Unknown + 1, nil
}

// encode returns the ids of a prompt. Its errors name the characters that have none.
func (g *textGenerator) encode(prompt string) ([]int32, error) {
	if prompt == "" {
		return nil, errors.New("it is empty; give at least one character to begin with")
	}
	if !utf8.ValidString(prompt) {
		return nil, errors.New("it is not UTF-8")
	}
	var ids []int32
	var unknown []string
	for _, c := range prompt {
		id := g.vocabulary.ID(c)
		if name := fmt.Sprintf("%q", c); id == data.Unknown && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
		ids = append(ids, id)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("the text that the model was trained on has no %s; leave out such characters", strings.Join(unknown[:min(len(unknown), 10)], ", "))
	}
	return ids, nil
}
