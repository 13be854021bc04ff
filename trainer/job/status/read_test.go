package status

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// answering returns what a rank of a test answers, as long as it has one.
func answering(pid int) func([]byte) []byte {
	return func(question []byte) []byte {
		if string(question) != crew.AskRecord {
			return nil
		}
		now := time.Unix(1e9, 0)
		text, _ := json.Marshal(crew.RankAnswer{PID: pid, Record: &trace.Record{Rank: pid, Taken: now, Calls: []trace.Call{{Call: "Barrier()", Seq: 1, Step: uint64(pid), Began: now}}}})
		return text
	}
}

// start joins the workers of a job, which answer as answers say.
func start(t *testing.T, name string, answers ...func([]byte) []byte) []*cluster.Node {
	c := cluster.Config{Cluster: name, Node: "vm", LocalSize: len(answers)}
	var nodes []*cluster.Node
	for local, answer := range answers {
		c.Local, c.Answer = local, answer
		n, err := cluster.Join(deadline(t), c)
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Close() })
		nodes = append(nodes, n)
		c.Join = []string{nodes[0].Addr().String()}
	}
	return nodes
}

// form has all nodes agree on a view, and returns their groups.
func form(t *testing.T, nodes []*cluster.Node) []*collective.Group {
	groups, errs := make([]*collective.Group, len(nodes)), make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { groups[i], errs[i] = n.Group(deadline(t)) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return groups
}

func watch(t *testing.T, name string, seeds ...string) *cluster.Watcher {
	w, err := cluster.Watch(deadline(t), cluster.Config{Cluster: name, Join: seeds})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// Read combines what the ranks of a running job answer. A rank whose answer is no JSON is
// silent like one that gives none.
func TestRead(t *testing.T) {
	nodes := start(t, t.Name(), answering(7), func([]byte) []byte { return []byte("?") }, answering(9))
	form(t, nodes)
	seed := nodes[0].Addr().String()
	w := watch(t, t.Name(), seed)
	job := Job{Seeds: []string{seed}}
	require.NoError(t, Meet(deadline(t), w, job, 10*time.Second))
	s, err := Read(deadline(t), w, job)
	require.NoError(t, err)
	require.Equal(t, 3, s.Size)
	require.EqualValues(t, 1, s.Epoch)
	require.Len(t, s.Ranks, 3)
	require.Equal(t, []int{7, 0, 9}, []int{s.Ranks[0].PID, s.Ranks[1].PID, s.Ranks[2].PID})
	require.EqualValues(t, 9, s.Step)
	require.Equal(t, "Barrier()", s.Ranks[2].Call.Call)
	require.Equal(t, "no answer within 2s: stopped, hanging or unreachable; check on vm", s.Ranks[1].Silent)
	require.True(t, s.Ranks[1].Alive)
}

// A worker of this machine that is known to have died is not asked, so that its job is
// reported without a wait.
func TestReadDoesNotAskTheDead(t *testing.T) {
	asked := make(chan struct{}, 1)
	nodes := start(t, t.Name(), answering(1), func([]byte) []byte {
		asked <- struct{}{}
		return nil
	})
	form(t, nodes)
	seed := nodes[0].Addr().String()
	w := watch(t, t.Name(), seed)
	dead := launch.Self()
	dead.Start++
	job := Job{Seeds: []string{seed}, Parts: []launch.Listing{{Node: "vm", Workers: []launch.Listed{{Local: 0, Process: launch.Self()}, {Local: 1, Process: dead}}}}}
	require.NoError(t, Meet(deadline(t), w, job, 10*time.Second))
	s, err := Read(deadline(t), w, job)
	require.NoError(t, err)
	require.Contains(t, s.Ranks[1].Silent, "dead: process ")
	require.Zero(t, s.Ranks[1].PID)
	require.Empty(t, asked)
}

// A job that has not formed has no view. That is a status, not an error.
func TestReadBeforeTheView(t *testing.T) {
	n, err := cluster.Join(deadline(t), cluster.Config{Cluster: t.Name(), Node: "vm", LocalSize: 2, Answer: answering(1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	seed := n.Addr().String()
	w := watch(t, t.Name(), seed)
	require.NoError(t, Meet(deadline(t), w, Job{Seeds: []string{seed}}, 10*time.Second))
	s, err := Read(deadline(t), w, Job{})
	require.NoError(t, err)
	require.Equal(t, &Status{Ranks: []Rank{}}, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Read(ctx, w, Job{})
	require.ErrorIs(t, err, context.Canceled)
}

// The error of Meet says where no answer came from.
func TestMeetFails(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, as for a suspended process
	require.NoError(t, err)
	defer silent.Close()
	addr := silent.Addr().String()
	err = Meet(deadline(t), watch(t, t.Name(), addr), Job{Seeds: []string{addr}}, 50*time.Millisecond)
	require.ErrorContains(t, err, "no answer within 50ms")
	require.ErrorContains(t, err, addr)

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	addr = free.Addr().String()
	err = Meet(deadline(t), watch(t, t.Name()+"2", addr), Job{Seeds: []string{addr}}, 10*time.Second)
	require.ErrorContains(t, err, "nothing is listening at "+addr)
}
