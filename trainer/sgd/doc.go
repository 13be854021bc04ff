// Package sgd trains one model with synchronous distributed SGD, step by step, under the
// caller's control. It follows ray.experimental.sgd.DistributedSGD (Ray 0.6): workers have
// devices, each device has a [Replica] of the model and its own rows, and the caller calls
// Step in a loop of its own.
//
//	replicas' gradients -> summed over all -> every replica makes the same update
//
// [New] runs all workers in this process, as goroutines. With [Join] each replica has a
// process of its own, and all processes make the same calls in the same order. Their group
// comes from a worker of trainer/job/crew, a node of collective/cluster, or any other
// source.
//
// The replica of device d of worker w is rank w*devices+d of the group. The strategy is
// trainer.AllReduce, so all replicas have the same bits after every step, and the bits do
// not depend on how the replicas are divided into workers. Package trainer's loop sends
// gradients while it computes others; here the stages of a step follow each other, so that
// each can be timed.
//
// # Errors
//
// If a replica fails, every process gets a [*ReplicaError] that names its worker and
// device. The SGD is then broken: each later call returns the same error, except Close.
// Start again from a checkpoint with a new SGD and Restore. A method whose context ends
// also breaks the SGD.
package sgd
