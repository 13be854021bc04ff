package nn_test

import (
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// A small language model: from rows of 16 ids to the scores of 50 ids at each position.
func ExampleEachPosition() {
	const context, width, vocabulary = 16, 32, 50
	block := func() nn.Layer {
		return nn.Chain(
			nn.Residual(nn.Chain(nn.EachPosition(&nn.LayerNorm{}), &nn.SelfAttention{Heads: 4, Causal: true})),
			nn.Residual(nn.EachPosition(nn.Chain(&nn.LayerNorm{}, &nn.Gelu{Out: 4 * width}, &nn.Linear{Out: width}))),
		)
	}
	model := nn.Chain(
		&nn.Embed{Rows: vocabulary, Out: width},
		&nn.Positions{},
		nn.Clone(2, block),
		nn.EachPosition(nn.Chain(&nn.LayerNorm{}, &nn.Linear{Out: vocabulary})),
	)
	b := nn.NewBuilder(1)
	out, err := model.Init([]int{context}, nil, b)
	if err != nil {
		fmt.Println(err)
		return
	}
	params, err := b.Build(cpu.New(cpu.Options{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out, params.Count())
	fmt.Println(params.List[2].Name, params.List[4].Name)
	// Output:
	// [16 50] 29234
	// layers.2.layers.0.layers.0.layers.0.layers.0.layers.0.G layers.2.layers.0.layers.0.layers.0.layers.1.qkv.W
}
