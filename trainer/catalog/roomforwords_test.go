package catalog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
)

// Documents that are too long for the memory are refused before anything is read from them.
func TestRoomForWords(t *testing.T) {
	var docs []*text.Doc
	for i := range 2 * entityExamplesBatch {
		docs = append(docs, &text.Doc{Words: strings.Fields(strings.Repeat("w ", 1+i/entityExamplesBatch))})
	}
	require.NoError(t, roomForWords(docs, entityExamplesBatch, 2*entityExamplesBatch*wordBytes))
	require.ErrorContains(t, roomForWords(docs, entityExamplesBatch, entityExamplesBatch*wordBytes), "documents 64 to 127 have 128 words together, for which the model takes about 0.00315 GB, more than the 0.00157 GB of memory of this machine: split long documents")
	require.NoError(t, roomForWords(docs, 1, 2*wordBytes))
	require.ErrorContains(t, roomForWords(docs, 1, wordBytes), "document 64 has 2 words, for which the model takes about 4.92e-05 GB, more than")
}
