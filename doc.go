// Package ringtrain is data-parallel training in Go. Several processes train one model:
// each holds a full copy of it, learns from its own rows, and combines its gradients with
// those of the others by ring allreduce. The processes find each other by gossip, agree
// on the membership, and report failures by name. ringtrain needs no Python or MPI and,
// without GPUs, no cgo.
//
// This package contains only the tests that enforce the rules of the source
// tree. Start here:
//
//	go run ./cmd/ringtrain train examples/mnist.cfg --workers 4
//
// trains a small network in four processes, and "ringtrain help" lists the other
// commands. In a program, start with one of these packages:
//
//   - [github.com/ringtrain/ringtrain/collective/cluster] joins processes into a
//     group that sums, gathers and broadcasts vectors.
//   - [github.com/ringtrain/ringtrain/collective] defines those operations, and
//     provides the same groups between goroutines of one process.
//   - [github.com/ringtrain/ringtrain/trainer] trains a model on the ranks of a
//     group; [github.com/ringtrain/ringtrain/nn] and its subpackages define
//     models, layers and optimizers.
//   - [github.com/ringtrain/ringtrain/trainer/cli] is the command as a library,
//     for programs with their own layers and data.
//
// README.md gives a tour, and docs/architecture.md is the map of all packages.
package ringtrain
