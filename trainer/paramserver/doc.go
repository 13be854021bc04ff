// Package paramserver trains with parameter servers: each server holds a share of the
// parameters and of the optimizer's state. In [Sync], all workers push the gradients of a
// step to the servers. These add them in ring order, update their shares and return the
// new values. So a training has the bits of trainer.AllReduce, with any number of servers.
//
// Servers are processes of their own, which call [Serve], or they are among the workers.
//
// Everything travels in calls of a collective.Group, so what that promises holds here: every
// wait ends and names a rank, and with a key all messages are encrypted. The scheme is that
// of Li et al., "Scaling Distributed Machine Learning with the Parameter Server" (OSDI
// 2014), with bulk-synchronous steps.
package paramserver
