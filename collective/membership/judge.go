package membership

import "time"

// contradictionTime is how long a contradiction must last before it ends the wait. In that
// time gossip reaches every process, so that all of them end.
const contradictionTime = time.Second

// A judge ends the wait for the first View if there can be none.
type judge struct {
	census   *census
	learner  *learner
	odd      time.Time // since when settings contradict; zero if they do not
	rejected []Seed    // all seeds, if all of them rejected us
	verdict  error     // why there can be no View
}

// rejectedBy records that all seeds rejected us. That is for good.
func (j *judge) rejectedBy(seeds []Seed) { j.rejected = seeds }

// consider looks for a reason that has lasted long enough.
func (j *judge) consider(now time.Time) {
	if j.decided() {
		return
	}
	_, w := j.census.assemble()
	rejected := len(j.rejected) > 0 && j.census.alone()
	switch {
	case len(w.Differ) == 0 && !rejected:
		j.odd = time.Time{}
	case j.odd.IsZero():
		j.odd = now
	case now.Sub(j.odd) < contradictionTime:
	case len(w.Differ) > 0:
		j.verdict = &DifferError{Member: j.census.self.Member, Differences: w.Differ}
	default:
		e := &KeyError{Member: j.census.self.Member}
		for _, s := range j.rejected {
			e.Problems = append(e.Problems, s.String())
		}
		j.verdict = e
	}
}

// decided reports whether the wait for the first View is over.
func (j *judge) decided() bool {
	return j.learner.held != nil || j.verdict != nil || j.census.watches()
}

// refuse ends the wait because of a visitor that has a key while this process has
// none, and reports whether it did. Without a key, anybody can end the wait in
// other ways too.
func (j *judge) refuse(v visitor) bool {
	if j.decided() || j.census.self.Nodes <= 1 || !j.census.alone() {
		return false
	}
	j.verdict = &KeyError{Member: j.census.self.Member, Problems: []string{v.String()}}
	return true
}

// unfit ends the wait because of this machine.
func (j *judge) unfit(why error) {
	if !j.decided() {
		j.verdict = why
	}
}
