package ner

import (
	"github.com/ringtrain/ringtrain/nn/portable"
)

// logLoss sets d to the gradient of the loss of scores: minus the logarithm of the probability
// that the softmax of the scores of all moves, even impossible ones, gives to the possible moves of the
// smallest cost together. Like spaCy, it does not reward one such move more than another.
func logLoss(d, scores []float32, costs []uint8, least uint8) (loss float64) {
	top, best := scores[0], float32(0)
	found := false
	for i, s := range scores {
		top = max(top, s)
		if costs[i] <= least && (!found || s > best) {
			best, found = s, true
		}
	}
	all, good := 0., 0.
	for i, s := range scores {
		e := portable.Exp(float64(s - top))
		d[i] = float32(e)
		all += e
		if costs[i] <= least {
			good += portable.Exp(float64(s - best))
		}
	}
	for i, s := range scores {
		g := float64(d[i]) / all
		if costs[i] <= least {
			g -= portable.Exp(float64(s-best)) / good
		}
		d[i] = float32(g)
	}
	return portable.Log(all) - portable.Log(good) + float64(top-best)
}

// mostLikely returns the possible move with the highest score, the first of several.
func mostLikely(scores []float32, costs []uint8) int {
	best := -1
	for i, s := range scores {
		if costs[i] < impossible && (best < 0 || s > scores[best]) {
			best = i
		}
	}
	return best
}
