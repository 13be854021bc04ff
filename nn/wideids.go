package nn

// WideIDs returns ids of 64 bits as the input of [HashEmbed]. A row is a token, and has an id
// for each column: ids holds the columns of the first token, then those of the second, and so
// on. lengths is the number of tokens of each document.
//
// The result has the shape (tokens, columns, 2): the lower half of an id, then the upper. It is
// in host memory, whatever the backend.
func WideIDs(ids []uint64, columns int, lengths []int) Tensor {
	halves := make([]int32, 0, 2*len(ids))
	for _, id := range ids {
		halves = append(halves, int32(uint32(id)), int32(uint32(id>>32)))
	}
	return Tensor{Shape: []int{len(ids) / columns, columns, 2}, Data: HostInts(halves), Lengths: lengths}
}

// wideID returns id i of a Tensor from WideIDs.
func wideID(halves []int32, i int) uint64 {
	return uint64(uint32(halves[2*i])) | uint64(uint32(halves[2*i+1]))<<32
}
