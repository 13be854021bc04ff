// Package trainer trains one model on many ranks at once.
//
// [Train] is the loop. On every step each rank computes gradients of its own
// rows; a [Strategy] turns them into the next parameters, the same on all
// ranks; the loop evaluates from time to time and tells an [Observer]. The
// strategy [AllReduce] sums gradients over a collective group.
//
//	batches -> Model.Learn -> Params.Grads --(Strategy)--> Params.Values -> next batch
//
// A step is all or nothing: parameters and optimizer state change in one
// place, after everything of the step has arrived, so ranks are never further
// apart than one whole step.
package trainer
