package membership

import "github.com/ringtrain/ringtrain/collective"

// A learner knows which View was decided last, and answers processes that are
// behind.
type learner struct {
	census   *census
	out      *output
	held     *holding          // our View, or nil
	excluded *exclusion        // proof that the job continues without us, or nil
	views    []collective.View // installed since the last newViews
}

// A holding is an installed View and the ballot under which it was decided. Its
// holder has accepted nothing above that ballot.
type holding struct {
	view collective.View
	asOf ballot
}

type exclusion struct {
	by    peer
	job   uint64
	epoch uint64 // of by's View
}

// instance returns what is voted on next: the epoch after the current one.
func (l *learner) instance() (job, epoch uint64) {
	if l.held == nil {
		return 0, 1
	}
	return l.held.view.Job, l.held.view.Epoch + 1
}

// quorum returns the processes that decide and how many of them must agree: for a
// first View v all its voters, later a majority of the previous View.
func (l *learner) quorum(v *vote) (voters []peer, need int) {
	if l.held != nil {
		voters = peersOf(l.held.view.Members)
		return voters, len(voters)/2 + 1
	}
	voters = v.voters()
	return voters, len(voters)
}

// onQuery sends our View to a process that holds an older one or none.
func (l *learner) onQuery(msg message) {
	switch {
	case l.held == nil || msg.Job != 0 && msg.Job != l.held.view.Job || msg.Epoch >= l.held.view.Epoch:
	case msg.Kind == watch:
		l.sendView(msg.From)
	default:
		l.reply(msg.From)
	}
}

// reply answers a process that is behind: with the View if it is a member, else
// with closed.
func (l *learner) reply(to peer) {
	if rankOf(l.held.view.Members, to) >= 0 {
		l.sendView(to)
		return
	}
	l.out.send(message{Kind: closed, To: to, Job: l.held.view.Job, Epoch: l.held.view.Epoch})
}

func (l *learner) sendView(to peer) {
	v := l.held.view
	l.out.send(message{Kind: commit, To: to, Job: v.Job, Epoch: v.Epoch, Ballot: l.held.asOf,
		Vote: &vote{Ballot: l.held.asOf, View: v}})
}

// onClosed records that the job continues without us, and reports whether it does:
// it started before we came, or a later View left us out.
func (l *learner) onClosed(msg message) bool {
	if l.held != nil && (msg.Job != l.held.view.Job || msg.Epoch <= l.held.view.Epoch) {
		return false
	}
	l.exclude(msg.From, msg.Job, msg.Epoch)
	return true
}

// exclude records that by holds a View of the job without us.
func (l *learner) exclude(by peer, job, epoch uint64) {
	l.excluded = &exclusion{by: by, job: job, epoch: epoch}
}

// readmit drops the proof that p gave, which gossip has given up: the job without
// us may be over. Once we held a View of the job, the proof stands.
func (l *learner) readmit(p peer) {
	if l.held == nil && l.excluded != nil && l.excluded.by == p {
		l.excluded = nil
	}
}

// committed returns the View that a commit brings, if it is ours and newer.
func (l *learner) committed(msg message) (v collective.View, ok bool) {
	if msg.Vote == nil {
		return collective.View{}, false
	}
	v = msg.Vote.View
	v.Self = rankOf(v.Members, l.census.id)
	switch {
	case v.Self < 0 && !l.census.watches():
		return v, false
	case l.held != nil && (v.Job != l.held.view.Job || v.Epoch <= l.held.view.Epoch):
		return v, false
	}
	return v, true
}

func (l *learner) install(v collective.View, asOf ballot) {
	l.held, l.excluded = &holding{view: v, asOf: asOf}, nil
	l.views = append(l.views, v)
}

// newViews returns the Views installed since the last call, in order.
func (l *learner) newViews() []collective.View {
	views := l.views
	l.views = nil
	return views
}
