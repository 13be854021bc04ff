// Package membership turns gossip into agreed Views. Gossip
// (hashicorp/memberlist) finds the other processes of a job and warns when one
// is gone, but two processes may see different lists at one moment; a ring
// needs one list in one order. So the processes vote: [Start] runs the gossip,
// [Agent.View] returns the list that all of them have agreed on.
//
// # The vote
//
// A View has an Epoch, 1 for the first of a job. For each epoch there is one
// instance of a vote in the manner of Paxos, whose ballots have one proposer
// each:
//
//   - prepare(ballot): whoever receives it promises to take part in nothing
//     below that ballot and reports the View it has accepted before, if any.
//   - propose(ballot, View): whoever has not promised a higher ballot accepts.
//   - commit(View): the View is decided and is installed. Who missed it asks.
//
// The first View is proposed once the expected workers are there: Nodes
// machines, each with all of its LocalSize processes. All workers rank before all
// servers. Within a role ranks go machine by machine, in the order of
// Config.Rank0, then NodeRank, then Node, and on each by Local. Rank 0 proposes. A first View needs the acceptance of every member. Its
// Job is drawn at random when it is first proposed, so two groups that never
// heard of each other cannot share one.
//
// When a proposer dies, the next lowest takes over with a higher ballot. It
// must finish what may have been decided already: a View that everybody it can
// reach has accepted, and these are most of its members, is proposed again,
// unchanged, and then needs all of those. A View that a reachable member did not
// accept is dead, because that member has now promised to refuse it. So is one
// that most of its members did not survive.
//
// Each later View needs a majority of the members of the View before (of two:
// both; Config.MinSize only raises it) and, unless it is finished in the place of
// a dead proposer, all its own members. Survivors keep their order. [Agent.Next]
// asks for one and says who is lost. That is the data plane's word, which comes
// seconds before gossip's; nobody waits for the lost, nor for a process whose
// machine refuses its messages. Whoever else is silent for a second is left out.
// The lowest rank that asks proposes first. A member that was left out is told so
// when it asks ([ErrExpelled]).
//
// # What holds
//
// There is at most one View for one (Job, Epoch), whatever gossip says. Processes
// that live hold the same first View, provided that two of them never claim one
// place (Node, Local) of the job. Only a chain of accidents could break the
// latter: gossip gives up a live process while a proposer dies and is started
// again, and a commit of before comes late. Then two jobs with different numbers
// begin to form, and handshakes, which carry the Job, do not let them mix. A
// process that comes too late is told so ([ErrComplete]). Processes that
// contradict each other, as about the number of machines, make no View: after a
// second all of them are told ([ErrDiffer]).
//
// With a key, a process has a part in all this once it has answered this start of
// the process that hears of it. So gossip recorded in an earlier job with the same
// key, and sent again, adds nobody and contradicts nothing.
//
// The vote is a state machine without clock, socket or goroutine, tested under
// loss, delay, duplication, reordering, crashes, restarts and false alarms in
// virtual time. The [Agent] gives it all of those.
package membership
