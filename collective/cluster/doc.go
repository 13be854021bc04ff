// Package cluster is the front door of the collective library: it finds the
// other processes of a job, agrees with them on a View and makes the Group
// that they talk in.
//
//	node, err := cluster.Join(ctx, cluster.Config{Nodes: 2, Bind: bind, Join: seeds, KeyFile: "job.key"})
//	...
//	defer node.Close()
//	group, err := node.Group(ctx)
//	...
//	err = collective.AllReduce(ctx, group, gradients, collective.Sum)
//
// When a rank is lost or a call fails otherwise, the Group is broken on every
// rank. [Node.Regroup] makes the next, of those who are left:
//
//	group, err = node.Regroup(ctx, group)
//
// It takes a majority of the members of the last View (of two: both), so that a
// network that is cut in two never leads to two jobs. Who is not of the majority
// gets membership.ErrMinority, and who was left out membership.ErrExpelled.
//
// The data plane listens on every address of the machine, unless Bind is
// loopback. Others learn all of them and use the first that works, so there is
// no interface to name.
//
// A process that only looks on calls [Watch].
//
// A process that is one of several on its machine says so by Node, Local and
// LocalSize; a launcher passes those on through the environment, see
// [FromEnv].
package cluster
