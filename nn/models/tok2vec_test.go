package models_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// tokens gives a layer the ids of documents in place of its input, whose gradient is 0.
type tokens struct {
	nn.Layer
	ids nn.Tensor
}

func (l tokens) Init(_, out []int, b *nn.Builder) ([]int, error) {
	b.TakesDocuments()
	return l.Layer.Init(l.ids.Shape[1:], out, b)
}

func (l tokens) Forward(p *nn.Pass, x nn.Tensor) (nn.Tensor, nn.Backprop) {
	y, back := l.Layer.Forward(p, l.ids)
	return y, func(dy nn.Tensor) nn.Tensor {
		back(dy)
		dx := nn.Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len())}
		p.Backend.Zero(dx.Data)
		return dx
	}
}

// someIDs returns four ids for each token of documents of these lengths.
func someIDs(lengths ...int) nn.Tensor {
	var ids []uint64
	for _, n := range lengths {
		for range 4 * n {
			ids = append(ids, uint64(len(ids)%17)*0x9e3779b97f4a7c15)
		}
	}
	return nn.WideIDs(ids, 4, lengths)
}

func tok2vec(width, depth int) models.Tok2Vec {
	return models.Tok2Vec{
		Embed:  models.MultiHashEmbed{Width: width, Attrs: []string{"NORM", "PREFIX", "SUFFIX", "SHAPE"}, Rows: []int{20, 10, 10, 10}},
		Encode: models.MaxoutWindowEncoder{Width: width, Depth: depth, Window: 1, Pieces: 3},
	}
}

// The tok2vec of spaCy's default.cfg.
func ExampleTok2Vec() {
	model := models.Tok2Vec{
		Embed:  models.MultiHashEmbed{Width: 96, Attrs: []string{"NORM", "PREFIX", "SUFFIX", "SHAPE"}, Rows: []int{2000, 1000, 1000, 1000}},
		Encode: models.MaxoutWindowEncoder{Width: 96, Depth: 4, Window: 1, Pieces: 3},
	}
	layer, b := model.Layer(.1), nn.NewBuilder(0)
	b.TakesDocuments()
	if _, err := layer.Init([]int{4, 2}, nil, b); err != nil {
		fmt.Println(err)
		return
	}
	backend := cpu.New(cpu.Options{})
	params, err := b.Build(backend)
	if err != nil {
		fmt.Println(err)
		return
	}
	lengths := []int{2, 1} // tokens of two documents
	ids := make([]uint64, 3*4)
	y, _ := layer.Forward(&nn.Pass{Backend: backend}, nn.WideIDs(ids, 4, lengths))
	fmt.Println(params.Count(), y.Shape, y.Lengths)
	// Output: 924768 [3 96] [2 1]
}

func TestTok2VecGradients(t *testing.T) {
	for name, l := range map[string]nn.Layer{
		"without dropout": tok2vec(4, 1).Layer(0),
		"with dropout":    tok2vec(4, 1).Layer(.2),
	} {
		t.Run(name, func(t *testing.T) {
			ids := someIDs(2, 0, 1) // few, because most steps of a difference cross a kink of some Maxout
			nntest.CheckGradients(t, cpu.New(cpu.Options{}), tokens{l, ids}, []int{1}, ids.Rows())
		})
	}
}

// forward returns the vectors of the tokens of documents, without dropout.
func forward(t *testing.T, l nn.Layer, ids nn.Tensor) []float32 {
	t.Helper()
	be, b := cpu.New(cpu.Options{}), nn.NewBuilder(5)
	made, err := tokens{l, ids}.Init(nil, nil, b)
	require.NoError(t, err)
	require.Equal(t, []int{6}, made)
	_, err = b.Build(be)
	require.NoError(t, err)
	require.NoError(t, nn.CheckInput(l, ids))
	y, _ := l.Forward(&nn.Pass{Backend: be}, ids)
	return y.Data.Float32s()
}

// A document has the same vectors whatever the other documents are.
func TestTok2VecKeepsDocumentsApart(t *testing.T) {
	all := someIDs(4, 1, 7)
	together := forward(t, tok2vec(6, 3).Layer(.5), all)
	at := 0
	for _, n := range all.Lengths {
		alone := nn.Tensor{Shape: []int{n, 4, 2}, Data: all.Data.Slice(8*at, 8*(at+n)), Lengths: []int{n}}
		require.Equal(t, together[6*at:6*(at+n)], forward(t, tok2vec(6, 3).Layer(.5), alone))
		at += n
	}
}
