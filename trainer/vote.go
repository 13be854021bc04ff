package trainer

import "fmt"

// vote queues a vote of all ranks on the step whose sums are queued. The update commits only
// if all ranks vote for the step.
//
// The host cannot decide this. When it learns that another rank has failed, its device may be
// steps ahead. Until then a sum can contain two things that must not be applied:
//
//   - Garbage. If a rank aborts its communicator, its kernels do not wait any more but send
//     whatever is in NCCL's buffers, and those of the other ranks end without an error.
//   - Gradients of old values, from a rank that withholds its updates but still takes part in
//     the sums. NCCL looks for an abort only while it waits.
//
// The invariant: a rank votes for step k only if it has made all updates before k, and was not
// told to abort before its sums of step k ended. The word that says so is set before the
// communicator is aborted. So if all ranks vote for k, no communicator was aborted during its
// sums, which are therefore complete, and all gradients in them are of the same values.
//
// A rank that withholds update k votes against k+1 and all later steps, so no rank makes
// update k+1. Hence each rank has the values after a complete step, and ranks differ by at
// most one step. They differ if the sum of votes is itself interrupted and reaches only some
// ranks. What it leaves on the others does not pass for votes for k, because votes for
// different steps differ.
//
// The votes need a sum of their own, after the gradients' sums have ended. If they were part
// of a bucket, they could arrive although another part of the bucket is garbage.
func (r *recorder) vote() error {
	if r.committer == nil {
		return nil
	}
	r.committer.Vote(r.votes)
	return r.sumAll(r.votes)
}

// committed returns an error if an update was withheld in a launch that all ranks have
// confirmed. No failure explains that: a rank that was told to abort cannot confirm.
func (r *recorder) committed(l launch) error {
	if r.committer == nil {
		return nil
	}
	end := l.first + l.steps
	if step, ok := r.committer.Withheld(end); ok {
		return fmt.Errorf("trainer: rank %d: the update of step %d was withheld although no rank has failed: ranks queue different sums, or were told to abort; report this as a bug", r.place.Rank(), step+1)
	}
	return nil
}
