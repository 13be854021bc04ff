package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// switchTime is the interval at which Switch asks whether the workers have switched.
const switchTime = 100 * time.Millisecond

// A Switched says which strategy the workers of a job use.
type Switched struct {
	From     string `json:"from"`     // the one before; equal to Strategy if it was in use already
	Strategy string `json:"strategy"` // in use
	Steps    int    `json:"steps"`    // done before it
}

// Switch asks the job that w watches to use a strategy, and waits until it does. The request
// goes to the first worker that answers, which tells the others with its next step. The error
// says why they do not switch, or that none answers. job is what this machine knows about it.
func Switch(ctx context.Context, w *cluster.Watcher, job Job, strategy string) (Switched, error) {
	patient, cancel := context.WithTimeout(ctx, ViewTime)
	v, err := w.View(patient)
	cancel()
	switch {
	case ctx.Err() != nil:
		return Switched{}, ctx.Err()
	case err != nil:
		return Switched{}, errors.New("the job has no view yet: it waits for somebody (ringtrain members shows who is there)")
	}
	all := workers{w, nil}
	for _, m := range v.Members {
		if _, s := job.State(m.Node, m.Local); m.Role == collective.Worker && s != launch.Stopped && s != launch.Dead {
			all.members = append(all.members, m)
		}
	}
	before, err := all.ask(ctx, "")
	if err != nil {
		return Switched{}, err
	}
	now, err := all.ask(ctx, strategy)
	for err == nil && now.Strategy != strategy {
		select {
		case <-time.After(switchTime):
		case <-ctx.Done():
			return Switched{}, ctx.Err()
		}
		now, err = all.ask(ctx, "")
	}
	if err != nil {
		return Switched{}, fmt.Errorf("asked for %s: %w", strategy, err)
	}
	return Switched{From: before.Strategy, Strategy: now.Strategy, Steps: now.Steps}, nil
}

// workers are those of a job that may answer.
type workers struct {
	watcher *cluster.Watcher
	members []collective.Member
}

// ask asks for a strategy, or with "" only which one is in use. It returns the first answer,
// and forgets the workers that have not given one.
func (s *workers) ask(ctx context.Context, strategy string) (crew.StrategyAnswer, error) {
	for ; len(s.members) > 0; s.members = s.members[1:] {
		patient, cancel := context.WithTimeout(ctx, answerTime)
		text, err := s.watcher.Ask(patient, s.members[0], []byte(crew.AskStrategy+strategy))
		cancel()
		var answer crew.StrategyAnswer
		switch {
		case ctx.Err() != nil:
			return answer, ctx.Err()
		case err != nil || json.Unmarshal(text, &answer) != nil:
		case answer.Error != "":
			return answer, errors.New(answer.Error)
		default:
			return answer, nil
		}
	}
	return crew.StrategyAnswer{}, errors.New("no worker answers: the job may have ended (ringtrain status shows what its workers do)")
}
