package gpu

import "github.com/ringtrain/ringtrain/nn"

var _ nn.Committer = (*pace)(nil)

// Vote implements nn.Committer. After Abort it votes against the step.
func (p *pace) Vote(votes nn.Buffer) {
	need("Vote", votes.Len() == nn.VoteLen)
	p.b.launch("vote", nn.VoteLen, p.b.at(votes), p.progress.Arg(), p.b.abort.arg())
}

// Commit implements nn.Committer.
func (p *pace) Commit(votes nn.Buffer, ranks int) {
	need("Commit", votes.Len() == nn.VoteLen && ranks > 0 && ranks <= nn.MaxVotes)
	p.b.launch("commit", 1, p.b.stop.Arg(), p.b.at(votes), number(ranks), p.progress.Arg(), p.b.abort.arg())
}

// Withheld implements nn.Committer.
func (p *pace) Withheld(end int) (step int, ok bool) {
	step, ok = p.b.abort.withheld()
	return step, ok && step < end
}
