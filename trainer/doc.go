// Package trainer trains one model on many ranks at once.
//
// [Train] is the loop. On every step each rank computes gradients of its own
// rows; a [Strategy] turns them into the next parameters, the same on all
// ranks; the loop evaluates from time to time and tells an [Observer]. The
// strategy [AllReduce] sums gradients over a collective group.
//
//	batches -> Model.Learn -> Params.Grads --(Strategy)--> Params.Values -> next batch
//
// With a [Streamer], gradients leave while the backward pass computes others. A
// rank may compute several micro-batches per step; their gradients are added as if
// each micro-batch had a rank of its own. A [Compression] makes gradients smaller
// before they leave, and each rank adds what was lost to its next gradients. A
// [Saver] on rank 0 takes snapshots. Training resumes from a snapshot with the same
// bits; the other ranks receive it from rank 0.
//
// A [Recording] makes the backend record whole steps, from the batch to the update,
// and repeat them. On a device a step then costs the host at most one launch, and
// the bits stay the same. The rows are in the backend's memory ([Resident]), and the
// strategy is [Recordable].
//
// A step is all or nothing. Parameters and optimizer state change in one place,
// after all sums of the step have arrived, so ranks are at most one step apart.
package trainer
