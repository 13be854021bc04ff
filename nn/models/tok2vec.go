package models

import "github.com/ringtrain/ringtrain/nn"

// MultiHashEmbed embeds several attributes of a token, each in a table of its own, and mixes
// the vectors with a Maxout layer: spaCy's MultiHashEmbed.v2 without static vectors.
type MultiHashEmbed struct {
	Width int      // of the vectors of attributes, and of the result
	Attrs []string // names of the attributes, in the order of columns of ids
	Rows  []int    // of the table of each attribute
}

// hashSeed is spaCy's seed of the first table. Each further table has the next one.
const hashSeed = 8

// mixPieces is the number of pieces of the Maxout layer, which spaCy fixes.
const mixPieces = 3

// Layer returns new layers, which take rows of ids as [nn.WideIDs] makes them.
func (e MultiHashEmbed) Layer(dropout float32) nn.Layer {
	var tables []nn.Layer
	for i, rows := range e.Rows {
		tables = append(tables, &nn.HashEmbed{Out: e.Width, Rows: rows, Seed: hashSeed + uint32(i), Column: i, Dropout: dropout})
	}
	return nn.Chain(nn.Concatenate(tables...), &nn.Maxout{Out: e.Width, Pieces: mixPieces, Normalize: true, Dropout: dropout})
}

// MaxoutWindowEncoder lets the vector of a token depend on its neighbours, by convolutions with
// Maxout, layer normalisation and residual connections: spaCy's MaxoutWindowEncoder.v2. A
// token sees Depth·Window tokens on each side, and no other document.
type MaxoutWindowEncoder struct {
	Width  int // of vectors
	Depth  int // number of convolutions
	Window int // tokens on each side that a convolution sees
	Pieces int // of Maxout
}

// Layer returns new layers, which take and return the vectors of tokens.
func (e MaxoutWindowEncoder) Layer(dropout float32) nn.Layer {
	convolution := func() nn.Layer {
		return nn.Residual(nn.Chain(
			&nn.ExpandWindow{Size: e.Window},
			&nn.Maxout{Out: e.Width, Pieces: e.Pieces, Normalize: true, Dropout: dropout},
		))
	}
	return nn.Padded(nn.Clone(e.Depth, convolution), e.Depth*e.Window)
}

// Tok2Vec maps tokens to vectors that depend on their context: spaCy's Tok2Vec.v2. Its model
// takes documents; see [nn.Builder.TakesDocuments].
type Tok2Vec struct {
	Embed  MultiHashEmbed
	Encode MaxoutWindowEncoder
}

// Layer returns new layers. They take rows of ids as [nn.WideIDs] makes them, with a column
// for each of Embed.Attrs, and return rows of Encode.Width. dropout is a fraction in [0, 1).
func (t Tok2Vec) Layer(dropout float32) nn.Layer {
	return nn.Chain(t.Embed.Layer(dropout), t.Encode.Layer(dropout))
}
