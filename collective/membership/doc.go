// Package membership turns gossip into agreed Views. Gossip
// (hashicorp/memberlist) finds the other processes of a job and warns when one
// disappears. But two processes may see different lists at the same moment, and a
// ring needs one list in one order. So the processes vote: [Start] runs the
// gossip, and [Agent.View] returns the list that all of them have agreed on.
//
// # The vote
//
// A View has an Epoch, 1 for the first of a job. Each epoch has one instance of a
// vote in the manner of Paxos, in which every ballot has one proposer:
//
//   - prepare(ballot): the receiver promises to ignore lower ballots, and reports
//     the View that it has accepted before, if any.
//   - propose(ballot, View): the receiver accepts unless it has promised a higher
//     ballot.
//   - commit(View): the View is decided and is installed. A process that missed it
//     asks for it.
//
// The first View is proposed when the expected workers are present: Nodes
// machines, each with all of its LocalSize processes. All workers rank before all
// servers. Within a role, ranks go machine by machine, ordered by Config.Rank0,
// then NodeRank, then Node, and on each machine by Local. Rank 0 proposes. A first
// View needs the acceptance of every member. Its Job is drawn at random when it is
// first proposed, so two groups that never heard of each other have different ones.
//
// If a proposer dies, the next lowest rank takes over with a higher ballot. It
// must finish a View that may have been decided already:
//
//   - If every member that it can reach has accepted a View, and these are most of
//     its members, it proposes that View again, unchanged. The View then needs all
//     of those.
//   - If a reachable member did not accept a View, that View is dead, because the
//     member has now promised to refuse it.
//   - If most members of a View did not survive, that View is dead too.
//
// Each later View needs a majority of the members of the previous one (of two:
// both; Config.MinSize can only raise that). Unless it is finished for a dead
// proposer, it also needs all its own members. Survivors keep their order.
//
// [Agent.Next] asks for a later View and says which members are lost. The data
// plane knows that seconds before gossip, so no process waits for the lost, or for
// one whose machine refuses messages. Any other member that is silent for
// a second is left out. The lowest rank that asks proposes first. A member that
// was left out gets [ErrExpelled] when it asks.
//
// A View may be agreed before gossip has shown every member all of the others. A
// member that lacks some exchanges gossip with one that it knows at once: if it knew
// only the seed and the seed died, it could not answer the others. A proposer does
// the same with each process that does not answer, which may not know its address.
//
// # What holds
//
// There is at most one View for one (Job, Epoch), whatever gossip says. Live
// processes hold the same first View, as long as no two of them claim the same
// place (Node, Local) of the job. Only a chain of accidents can break the latter:
// gossip gives up a live process, a proposer dies and is restarted at the same
// time, and an old commit arrives late. Then two jobs with different numbers begin
// to form. Handshakes carry the Job, so the two cannot mix.
//
// A process that comes too late gets [ErrComplete]. Processes that contradict each
// other, for example about the number of machines, form no View: after a second
// all of them get [ErrDiffer].
//
// With a key, a process takes part only after it has answered a challenge from
// the process that hears of it. So replayed gossip of an earlier job with the same
// key adds no process and contradicts nothing.
//
// The vote is a state machine without clock, socket or goroutine. Its tests run in
// virtual time under loss, delay, duplication, reordering, crashes, restarts and
// false alarms. The [Agent] connects it to the real network and clock.
package membership
