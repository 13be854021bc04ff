package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
)

// ErrDiffer is matched by errors of processes that look for each other but were
// started for different jobs. Waiting cannot help.
var ErrDiffer = errors.New("the processes of the job were started with different settings")

// DifferError lists the settings in which this process and others contradict.
type DifferError struct {
	Member      collective.Member // this process
	Differences []string          // each names the setting, both values and a process
}

// Error returns one line that says what to do.
func (e *DifferError) Error() string {
	text := strings.Join(firstFew(e.Differences), "; ")
	if n := len(e.Differences) - shown; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text + ": start every machine with the same command and version"
}

// Is makes errors.Is(err, ErrDiffer) true.
func (e *DifferError) Is(target error) bool { return target == ErrDiffer }

// ErrKey is matched if this process and the others do not have the same key, or
// only some have one.
var ErrKey = errors.New("the processes of the job do not have the same key")

// KeyError lists the addresses whose keys differ.
type KeyError struct {
	Member   collective.Member // this process
	Problems []string          // each names an address
}

// Error returns one line that says what to do.
func (e *KeyError) Error() string { return strings.Join(firstFew(e.Problems), "; ") }

// Is makes errors.Is(err, ErrKey) true.
func (e *KeyError) Is(target error) bool { return target == ErrKey }

// differences returns one clause for each setting in which self and other
// contradict.
func differences(self, other candidate) []string {
	var list []string
	differ := func(what, here, there string) {
		if here != there {
			list = append(list, fmt.Sprintf("%s is %s here and %s on %s", what, here, there, other.Name))
		}
	}
	if other.Format != self.Format {
		differ("the gossip format", formatText(self), formatText(other))
		return list
	}
	if self.Version != "" && other.Version != "" {
		differ("the version", self.Version, other.Version)
	}
	differ("--nodes", fmt.Sprint(max(self.Nodes, 1)), fmt.Sprint(max(other.Nodes, 1)))
	for _, mine := range self.Same {
		for _, theirs := range other.Same {
			if mine.Name == theirs.Name {
				differ(mine.Name, mine.Value, theirs.Value)
			}
		}
	}
	if self.Rank0 != "" && other.Rank0 != "" {
		differ("--rank0", self.Rank0, other.Rank0)
	}
	if self.Node == other.Node {
		differ("the node rank of "+self.Node, fmt.Sprint(self.NodeRank), fmt.Sprint(other.NodeRank))
	}
	return list
}

// agrees reports whether there are no differences. It must be fast: whenever a
// process comes or goes, it is called for every other one.
func (c candidate) agrees(o candidate) bool {
	return c.Format == o.Format && c.Nodes == o.Nodes && c.Version == o.Version && c.Rank0 == o.Rank0 &&
		(c.Node != o.Node || c.NodeRank == o.NodeRank) && slices.Equal(c.Same, o.Same)
}

func formatText(c candidate) string {
	if c.Version == "" {
		return fmt.Sprint(c.Format)
	}
	return fmt.Sprintf("%d (version %s)", c.Format, c.Version)
}

// contradictions returns the differences between self and the others. Of several
// that differ only in the process, it returns the first.
func contradictions(self candidate, others []candidate) []string {
	slices.SortFunc(others, func(a, b candidate) int { return rankOrder(a.Member, b.Member) })
	var list []string
	for _, o := range others {
		if self.agrees(o) {
			continue
		}
		for _, text := range differences(self, o) {
			what, _, _ := strings.Cut(text, " here and ")
			if !slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, what+" here and ") }) {
				list = append(list, text)
			}
		}
	}
	return append(list, rank0Contradictions(self, others)...)
}

// rank0Contradictions returns those among others, if self has no Rank0.
func rank0Contradictions(self candidate, others []candidate) []string {
	if self.Rank0 != "" {
		return nil
	}
	i := slices.IndexFunc(others, func(c candidate) bool { return c.Rank0 != "" })
	for _, c := range others {
		if c.Rank0 != "" && c.Rank0 != others[i].Rank0 {
			return []string{fmt.Sprintf("--rank0 is %s on %s and %s on %s", others[i].Rank0, others[i].Name, c.Rank0, c.Name)}
		}
	}
	return nil
}
