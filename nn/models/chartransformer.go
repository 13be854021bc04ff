package models

import "github.com/ringtrain/ringtrain/nn"

// CharTransformer is a small language model like GPT-2 (Radford et al., 2019): it maps rows
// of ids to the probabilities of the next id at each position. Depth blocks follow
// the embeddings, each of causal self-attention and of a layer of 4·width Gelu units, with
// LayerNorm before and a residual around both. heads must divide width. The model decides
// the number of ids and of positions.
func CharTransformer(width, heads, depth int) nn.Layer {
	block := func() nn.Layer {
		return nn.Chain(
			nn.Residual(nn.Chain(nn.EachPosition(&nn.LayerNorm{}), &nn.SelfAttention{Heads: heads, Causal: true})),
			nn.Residual(nn.EachPosition(nn.Chain(&nn.LayerNorm{}, &nn.Gelu{Out: 4 * width}, &nn.Linear{Out: width}))),
		)
	}
	return nn.Chain(
		&nn.Embed{Out: width},
		&nn.Positions{},
		nn.Clone(depth, block),
		nn.EachPosition(nn.Chain(&nn.LayerNorm{}, &nn.Softmax{})),
	)
}
