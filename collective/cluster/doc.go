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
// A process that is one of several on its machine says so by Node, Local and
// LocalSize; a launcher passes those on through the environment, see
// [FromEnv].
package cluster
