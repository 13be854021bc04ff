// Package ringtrain is data-parallel training in Go. Several processes train one
// model: each holds a full copy of it, learns from its own rows, and combines
// its gradients with the others' by ring allreduce. The processes find each other
// by gossip, agree on who is in, and name whoever fails. It needs no Python, no
// MPI and, without GPUs, no cgo.
//
// This package holds no code but the tests that enforce the rules of the tree.
// Start here:
//
//	go run ./cmd/ringtrain train examples/mnist.cfg --workers 4
//
// trains a small network in four processes, and "ringtrain help" lists what else
// the command does. In a program, start with one of these packages:
//
//   - [github.com/ringtrain/ringtrain/collective/cluster] joins processes to a
//     group that sums, gathers and broadcasts vectors.
//   - [github.com/ringtrain/ringtrain/collective] defines those operations, and
//     makes the same groups between goroutines of one process.
//   - [github.com/ringtrain/ringtrain/trainer] trains a model on the ranks of a
//     group; [github.com/ringtrain/ringtrain/nn] and its subpackages define
//     models, layers and optimizers.
//   - [github.com/ringtrain/ringtrain/trainer/cli] is the command as a library,
//     for programs with layers and data of their own.
//
// README.md is the tour, and docs/architecture.md the map of all packages.
package ringtrain
