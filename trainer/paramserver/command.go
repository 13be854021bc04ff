package paramserver

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

// A verb says what all ranks do next.
type verb int64

const (
	verbStart  verb = iota + 1 // the layout follows, then worker 0's values, and slots unless step is 0
	verbStep                   // gradients follow
	verbState                  // slots follow, for workers that want them
	verbEnd                    // servers end
	verbResume                 // the layout follows; servers continue from what they have kept
)

func (v verb) String() string {
	if v < verbStart || v > verbResume {
		return fmt.Sprintf("verb %d", int64(v))
	}
	return [...]string{"start", "step", "state", "end", "resume"}[v-verbStart]
}

// A command is what the workers tell the servers. It is the same on all workers, except for
// wanted.
type command struct {
	verb   verb
	step   int64 // done so far
	number int64 // verbStart, verbResume: bytes of the layout
	wanted bool  // verbState: this worker wants the slots

	undivided bool // verbStep: the sum is not divided by the rows of all workers
}

// commandLen is the length of a command in int64: 64 bytes.
const commandLen = 8

func (c command) put(b []int64) {
	clear(b[:commandLen])
	b[0], b[1], b[2] = int64(c.verb), c.step, c.number
	if c.undivided {
		b[3] = 1
	}
	if c.wanted {
		b[4] = 1
	}
}

func getCommand(b []int64) command {
	return command{verb: verb(b[0]), step: b[1], number: b[2], undivided: b[3] != 0, wanted: b[4] != 0}
}

// check returns an error if no worker of this version sends such a command.
func (c command) check() error {
	switch {
	case c.verb < verbStart || c.verb > verbResume,
		c.step < 0, c.number < 0,
		(c.verb == verbStart || c.verb == verbResume) && c.number > maxLayout:
		return fmt.Errorf("paramserver: unknown command %v at step %d with %d: run the same version on every machine", c.verb, c.step, c.number)
	}
	return nil
}

// commands exchanges commands. All ranks call it. What a server passes does not count. It
// returns the commands of all workers, which are equal except for wanted.
func commands(ctx context.Context, r ranks, mine command) ([]command, error) {
	words, own := commandWords(r, mine)
	if err := collective.AllGather(ctx, r.group, words, own); err != nil {
		return nil, fmt.Errorf("paramserver: exchanging commands: %w", err)
	}
	return r.commandsOf(words)
}

// commandWords returns what ranks exchange about their commands.
func commandWords(r ranks, mine command) (all, own []int64) {
	own = make([]int64, commandLen)
	mine.put(own)
	return make([]int64, commandLen*r.group.Size()), own
}

// commandsOf returns the commands of all workers.
func (r ranks) commandsOf(words []int64) ([]command, error) {
	all := make([]command, r.workers)
	for w := range all {
		c := getCommand(words[w*commandLen:])
		if err := c.check(); err != nil {
			return nil, err
		}
		all[w] = c
		c.wanted = all[0].wanted
		if c != all[0] {
			return nil, fmt.Errorf("paramserver: rank %d (%s) is at %v %d and rank 0 at %v %d: all workers must make the same calls",
				w, r.group.View().Name(w), c.verb, c.step, all[0].verb, all[0].step)
		}
	}
	return all, nil
}
