package status

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// switches returns what a worker of a test answers. It switches from ps-sync when it has
// been asked three times after a request.
func switches(requests *requested) func([]byte) []byte {
	asked := 0
	return func(question []byte) []byte {
		name, ok := strings.CutPrefix(string(question), crew.AskStrategy)
		if !ok {
			return nil
		}
		requests.add(name)
		answer := crew.StrategyAnswer{Strategy: "ps-sync", Steps: 4}
		switch {
		case name == "refused":
			answer = crew.StrategyAnswer{Error: "it cannot"}
		case requests.has("allreduce") && asked > 2:
			answer = crew.StrategyAnswer{Strategy: "allreduce", Steps: 9}
		case requests.has("allreduce"):
			asked++
		}
		text, _ := json.Marshal(answer)
		return text
	}
}

// requested holds the strategies that were requested.
type requested struct {
	mu    sync.Mutex
	names []string
}

func (r *requested) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name != "" {
		r.names = append(r.names, name)
	}
}

func (r *requested) has(name string) bool { return strings.Contains(strings.Join(r.all(), " "), name) }

func (r *requested) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names
}

// Switch asks once, and waits until the workers have switched.
func TestSwitch(t *testing.T) {
	var requests requested
	nodes := start(t, t.Name(), switches(&requests))
	form(t, nodes)
	seed := nodes[0].Addr().String()
	w, job := watch(t, t.Name(), seed), Job{Seeds: []string{seed}}
	require.NoError(t, Meet(deadline(t), w, job, 10*time.Second))
	_, err := Switch(deadline(t), w, job, "refused")
	require.EqualError(t, err, "asked for refused: it cannot")
	got, err := Switch(deadline(t), w, job, "ps-sync")
	require.NoError(t, err)
	require.Equal(t, Switched{From: "ps-sync", Strategy: "ps-sync", Steps: 4}, got)
	got, err = Switch(deadline(t), w, job, "allreduce")
	require.NoError(t, err)
	require.Equal(t, Switched{From: "ps-sync", Strategy: "allreduce", Steps: 9}, got)
	require.Equal(t, []string{"refused", "ps-sync", "allreduce"}, requests.all())

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = Switch(ctx, w, job, "never")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A worker that does not answer is passed over.
func TestSwitchWithASilentWorker(t *testing.T) {
	var requests requested
	nodes := start(t, t.Name(), func([]byte) []byte { return nil }, switches(&requests))
	form(t, nodes)
	seed := nodes[1].Addr().String()
	w, job := watch(t, t.Name(), seed), Job{Seeds: []string{seed}}
	require.NoError(t, Meet(deadline(t), w, job, 10*time.Second))
	got, err := Switch(deadline(t), w, job, "allreduce")
	require.NoError(t, err)
	require.Equal(t, "allreduce", got.Strategy)
	require.Equal(t, []string{"allreduce"}, requests.all())
}

// Without a worker that answers, Switch says what to do.
func TestSwitchFails(t *testing.T) {
	nodes := start(t, t.Name(), func([]byte) []byte { return []byte("?") })
	seed := nodes[0].Addr().String()
	w, job := watch(t, t.Name(), seed), Job{Seeds: []string{seed}}
	require.NoError(t, Meet(deadline(t), w, job, 10*time.Second))
	form(t, nodes)
	_, err := Switch(deadline(t), w, job, "allreduce")
	require.EqualError(t, err, "no worker answers: the job may have ended (ringtrain status shows what its workers do)")
}
