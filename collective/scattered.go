package collective

// scattered is memory that lies in several places, in order.
type scattered [][]byte

// scatter returns the memory of vectors in host memory.
func scatter(vectors []Vector) scattered {
	s := make(scattered, len(vectors))
	for i, v := range vectors {
		s[i] = v.bytes()
	}
	return s
}

// appendRange appends the memory of bytes lo to hi to list. hi may be beyond the end.
func (s scattered) appendRange(list [][]byte, lo, hi int) [][]byte {
	for _, b := range s {
		if from, to := max(lo, 0), min(hi, len(b)); from < to {
			list = append(list, b[from:to])
		}
		lo, hi = lo-len(b), hi-len(b)
	}
	return list
}

// copyScattered copies src to dst, which is as long.
func copyScattered(dst, src scattered) {
	at := 0 // bytes of dst that are done
	for _, from := range src {
		parts := dst.appendRange(nil, at, at+len(from))
		at += len(from)
		for _, to := range parts {
			from = from[copy(to, from):]
		}
	}
}
