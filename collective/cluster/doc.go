// Package cluster is the entry point of the collective library. It finds the other
// processes of a job, agrees with them on a View, and makes their Group.
//
//	node, err := cluster.Join(ctx, cluster.Config{Nodes: 2, Bind: bind, Join: seeds, KeyFile: "job.key"})
//	...
//	defer node.Close()
//	group, err := node.Group(ctx)
//	...
//	err = collective.AllReduce(ctx, group, gradients, collective.Sum)
//
// If a rank is lost, or a call fails for another reason, the Group is broken on
// every rank. [Node.Regroup] makes the next one, of the survivors:
//
//	group, err = node.Regroup(ctx, group)
//
// This needs a majority of the members of the last View (of two: both), so a network
// that splits in two never leads to two jobs. A process in the minority gets
// membership.ErrMinority. One that was left out gets membership.ErrExpelled.
//
// The data plane listens on every address of the machine, unless Bind is loopback.
// Others learn all addresses and use the first that works, so you need not name an
// interface.
//
// A process that only observes a job calls [Watch].
//
// If a machine runs several processes, Node, Local and LocalSize identify each of
// them. A launcher passes them on in the environment; see [FromEnv].
package cluster
