// Package paramserver trains with parameter servers: each server holds a share of the
// parameters and of the optimizer's state. In [Sync], all workers push the gradients of a
// step to the servers. These add them in ring order, update their shares and return the
// new values. So a run has the bits of trainer.AllReduce, with any number of servers.
//
// In [Async], servers do not wait for all workers: a [Policy] says which gradients make an
// update. An arbiter decides this for each server, without I/O; the server around it answers
// requests, and a post sends and receives.
//
// In [Peers] there are no servers: each worker owns a share, and updates it when enough
// gradients of its newest values have come. An owner counts and adds them, without I/O; a
// peerMail receives what others send while the worker computes.
//
// Servers are processes of their own, which call [Serve], or they are among the workers. A
// server process that is killed can be started again: see [ServeKept].
//
// Async can continue without workers that are lost, if servers are processes of their own. A
// loss breaks the group on all ranks, in the middle of any message. The ranks that are left
// form the next group ([Servers].Regroup) and forget the lost worker: a quorum larger than the
// number of workers becomes that number, and gradients that have arrived are applied. Servers
// keep their shares and what their arbiters know. Workers number their requests, and repeat in
// the new group those without an answer, so each gradient is applied at most once. Worker 0
// evaluates and saves, so it cannot be lost. When all workers have told all servers that they
// need them no more, no rank needs another, and losses are no errors. [Async.Disconnect] does
// this.
//
// Everything travels in calls or messages of a collective.Group, so what that promises holds
// here: every wait ends and names a rank, and with a key all messages are encrypted. Sync is
// the scheme of Li et al., "Scaling Distributed Machine Learning with the Parameter Server"
// (OSDI 2014), with bulk-synchronous steps. Async is that of Downpour SGD in Dean et al.,
// "Large Scale Distributed Deep Networks" (NIPS 2012). Peers is that of spacy-ray (2021).
package paramserver
