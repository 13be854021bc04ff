// Package trainer trains one model on many ranks at once.
//
// [Train] is the loop. On every step each rank computes gradients of its own
// rows; a [Strategy] turns them into the next parameters, the same on all
// ranks; the loop evaluates from time to time and tells an [Observer]. The
// strategy [AllReduce] sums gradients over a collective group.
//
//	batches -> Model.Learn -> Params.Grads --(Strategy)--> Params.Values -> next batch
//
// Gradients leave while the backward pass still makes others, where the
// strategy is a [Streamer]. A step may have several micro-batches on each rank,
// whose gradients are added as if each had a rank of its own. A [Compression]
// makes gradients smaller before they leave, and each rank keeps what is lost for
// its next step. A [Saver] on rank 0 takes snapshots, and a training goes on from
// one with the same bits, all other ranks getting theirs from rank 0.
//
// With a [Recording] whole steps, from the batch to the update, are recorded by
// the backend and repeated: on a device a step then costs the host one launch, or
// less. The bits are the same. Rows lie in the backend's memory ([Resident]), and
// the strategy is [Recordable].
//
// A step is all or nothing: parameters and optimizer state change in one
// place, after everything of the step has arrived, so ranks are never further
// apart than one whole step.
package trainer
