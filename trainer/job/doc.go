// Package job trains a model with several workers: the job of "ringtrain train" as a
// library.
//
// A [Spec] says what to train, on what, by how many workers and where. [Spec.Settle]
// reads the config and checks everything that can be checked before anything starts;
// the result is a [Training]. [Training.Launch] starts the workers of this machine and
// waits for them, and [Work] is one of them. [Run] is all of it in one call, for
// programs of your own: see examples/embed. A [Loader] evaluates and predicts with the weights.
//
// Where to look:
//
//   - launch.go: what a launcher does; crew/startworker.go starts a worker process
//   - work.go, rank.go: what a worker does, and how the training of a rank is assembled
//   - crew/lost.go: reports of a lost rank
//   - checkpoint.go: writes checkpoints; weights.go: the trained weights; final.go: what
//     happens when they cannot be written; the file format is in trainer/checkpoint
//   - resume.go: resumes from a checkpoint
//   - plan.go: describes how gradients are summed
//   - device: GPUs
//   - event: what happens, as one JSON object per line
//
// Nothing here exits, logs or prints, except to the Display and the writers of
// [Options]. Errors name the flags of "ringtrain train".
package job
