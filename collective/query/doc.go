// Package query asks a running job about itself, from outside, and checks
// whether two machines can reach each other.
//
// [Read] reports the members of a job: the View that they have agreed on, and
// the processes that gossip sees. [Ask] sends one question to every member. Both
// use a [Watcher], such as *cluster.Watcher. A Watcher observes a job without
// being in its View, so the job never waits for it.
//
// [Reach] checks TCP and UDP in both directions between this machine and one that
// runs an [Answerer]. All their messages have the same size, 32 bytes.
package query
