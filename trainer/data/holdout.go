package data

import "math"

// holdoutSeed chooses the rows that Holdout holds out. It is fixed, so that runs with
// different seeds are evaluated on the same rows.
const holdoutSeed = 0x686f6c646f7574

// Holdout divides rows 0 .. rows-1 into those to train on and those to evaluate on, each
// in ascending order. The latter are the given fraction, rounded, of a random permutation
// that depends only on the number of rows. Either part may be empty. A fraction below 0 counts
// as 0, and one above 1 as 1.
func Holdout(rows int, fraction float64) (train, test []int32) {
	perm := Range(nil, 0, rows)
	shuffle(perm, newDraws(holdoutSeed, 0))
	held := make([]bool, rows)
	for _, r := range perm[:int(math.Round(min(max(fraction, 0), 1)*float64(rows)))] {
		held[r] = true
	}
	for r, out := range held {
		if out {
			test = append(test, int32(r))
		} else {
			train = append(train, int32(r))
		}
	}
	return train, test
}
