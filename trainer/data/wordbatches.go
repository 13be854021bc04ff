package data

// WordBatches say how documents become batches of about a given number of words. It is
// batch_by_words of spaCy.
type WordBatches struct {
	// Size returns the words of batch n, counted from 0, that a rank aims at. It is called
	// for n in any order.
	Size func(n int) float64
	// Tolerance is the fraction of Size by which a batch may exceed it.
	Tolerance float64
	// DiscardOversize leaves out documents that alone exceed Size and Tolerance. Otherwise
	// each is a batch of its own.
	DiscardOversize bool
}

// A wordBatcher divides documents into batches.
type wordBatcher struct {
	WordBatches
	ranks  float64
	sizes  int // calls of Size so far
	target float64
	limit  float64
	emit   func(batch []int32)

	batch, overflow           []int32
	batchWords, overflowWords float64
}

// split calls emit with each batch of an epoch: of documents in this order, with these
// words. emit must copy the batch. sizes is the number of sizes that earlier epochs used;
// split returns it for the next one.
func (w WordBatches) split(order, words []int32, ranks, sizes int, emit func(batch []int32)) int {
	b := wordBatcher{WordBatches: w, ranks: float64(ranks), sizes: sizes, emit: emit}
	b.next()
	for _, row := range order {
		b.add(row, float64(words[row]))
	}
	b.flush(append(b.batch, b.overflow...))
	return b.sizes
}

// add places a document.
func (b *wordBatcher) add(row int32, words float64) {
	switch {
	case words > b.limit:
		if !b.DiscardOversize {
			b.emit([]int32{row})
		}
	case b.fits(row, words):
	default:
		b.flush(b.batch)
		b.next()
		b.batch, b.batchWords, b.overflow, b.overflowWords = b.overflow, b.overflowWords, b.batch[:0], 0
		if b.fits(row, words) {
			return
		}
		b.flush(b.batch)
		b.next()
		b.batch, b.batchWords = append(b.batch[:0], row), words
	}
}

// fits adds a document to the batch, or to the overflow with which the next one starts, if
// there is room.
func (b *wordBatcher) fits(row int32, words float64) bool {
	switch {
	case b.overflowWords == 0 && b.batchWords+words <= b.target:
		b.batch, b.batchWords = append(b.batch, row), b.batchWords+words
	case b.batchWords+b.overflowWords+words <= b.limit:
		b.overflow, b.overflowWords = append(b.overflow, row), b.overflowWords+words
	default:
		return false
	}
	return true
}

// flush emits a batch that has documents.
func (b *wordBatcher) flush(batch []int32) {
	if len(batch) > 0 {
		b.emit(batch)
	}
}

// next takes the next size.
func (b *wordBatcher) next() {
	b.target = float64(b.Size(b.sizes) * b.ranks)
	b.limit = b.target + float64(b.target*b.Tolerance)
	b.sizes++
}
