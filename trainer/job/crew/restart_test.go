//go:build unix

package crew

import (
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// start starts servers as a launcher does, and returns where the last one joins.
func (s *servers) start(p *launch.Process, locals ...int) (c cluster.Config) {
	for _, local := range locals {
		c = cluster.Config{Cluster: "job", Local: local}
		s.place(&c)
		s.started(local, p)
	}
	return c
}

// dueNow returns due in order.
func (s *servers) dueNow() []int {
	locals := s.due()
	slices.Sort(locals)
	return locals
}

var killed9 = launch.Exit{Code: -1, Signal: syscall.SIGKILL}

// After a loss, all servers join the next group: the lost one, those that have ended because
// of it, and those that still run.
func TestServersJoinTheNextGroup(t *testing.T) {
	s, old, fresh := &servers{most: 1}, new(launch.Process), new(launch.Process)
	require.Equal(t, cluster.Config{Cluster: "job", Local: 4, Role: collective.Server}, s.start(old, 2, 3, 4))
	require.False(t, s.spare(killed9), "the job has not begun")
	require.Empty(t, s.regrouped(&event.Regrouped{}))
	require.Empty(t, s.dueNow())

	require.False(t, s.spare(launch.Exit{Code: 1}), "it has said why it failed")
	require.True(t, s.spare(killed9))
	s.ended(2)
	s.ended(3)
	require.Empty(t, s.dueNow(), "the workers have not noticed yet")
	require.Equal(t, []*launch.Process{old}, s.regrouped(&event.Regrouped{Number: 1, Addr: "a:1"}), "server 4 still runs")
	require.Equal(t, []int{2, 3}, s.dueNow())
	require.Empty(t, s.dueNow(), "they are being started")
	s.ended(4)
	require.Equal(t, []int{4}, s.dueNow())
	require.Equal(t, cluster.Config{Cluster: "job.1", Join: []string{"a:1"}, Local: 4, Role: collective.Server}, s.start(fresh, 2, 3, 4))
	require.Empty(t, s.regrouped(&event.Regrouped{Number: 1}))
	require.False(t, s.spare(killed9), "once only")
}

// A server that is lost before its group is formed joins the same group; one that was started
// for a group that is over joins the newest.
func TestServersAreLostWhileAGroupForms(t *testing.T) {
	s, p, late := &servers{most: 9}, new(launch.Process), new(launch.Process)
	s.start(p, 1)
	s.regrouped(&event.Regrouped{})
	s.regrouped(&event.Regrouped{Number: 1, Addr: "a:1"})
	s.ended(1)
	require.Equal(t, []int{1}, s.dueNow())
	s.start(p, 1)
	s.ended(1)
	require.Equal(t, []int{1}, s.dueNow(), "again in group 1")
	c := cluster.Config{Cluster: "job", Local: 1}
	s.place(&c)
	require.Empty(t, s.regrouped(&event.Regrouped{Number: 2, Addr: "b:1"}), "its process is not known yet")
	require.Equal(t, []*launch.Process{late}, s.started(1, late))
	s.regrouped(&event.Regrouped{Number: 1}) // late news
	s.ended(1)
	require.Equal(t, []int{1}, s.dueNow())
	require.Equal(t, "job.2", s.start(p, 1).Cluster)
}

// When all workers have succeeded, servers that wait for them are ended, and none is started.
func TestServersEndWithTheWorkers(t *testing.T) {
	s, p := &servers{most: 9}, new(launch.Process)
	s.start(p, 2)
	s.regrouped(&event.Regrouped{})
	s.regrouped(&event.Regrouped{Number: 1, Addr: "a:1"})
	s.ended(2)
	s.dueNow()
	s.start(p, 2)
	require.Empty(t, s.finished(2))
	require.Equal(t, []*launch.Process{p}, s.finished(2))
	s.ended(2)
	require.Empty(t, s.dueNow())
}

// A server can end before its launcher hears that the group was formed, and is then being
// started again when the last worker ends.
func TestServerStartsAfterTheWorkersEnd(t *testing.T) {
	s, p := &servers{most: 9}, new(launch.Process)
	s.start(p, 2)
	s.ended(2)
	require.Equal(t, []int{2}, s.dueNow())
	require.Empty(t, s.finished(1), "its process is not known yet")
	s.regrouped(&event.Regrouped{Number: 1, Addr: "a:1"}) // late news
	s.place(&cluster.Config{Cluster: "job", Local: 2})
	require.Equal(t, []*launch.Process{p}, s.started(2, p))
	s.ended(2)
	require.Empty(t, s.dueNow())
}
