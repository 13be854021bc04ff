// Package query asks a running job about itself, from outside, and checks
// whether two machines can reach each other.
//
// [Read] puts together who is in a job: the View that its members have agreed on,
// and the processes that gossip sees. [Ask] puts one question to every member.
// Both use a [Watcher], such as *cluster.Watcher, which sees a job and is in no
// View of it, so the job does not wait for it.
//
// [Reach] checks TCP and UDP in both directions between this machine and one on
// which an [Answerer] listens. Their messages all have the same size of 32 bytes.
package query
