package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

func situation(hosts ...int) schedule.Situation {
	return schedule.Situation{Hosts: hosts, Links: schedule.Links{Near: schedule.SharedMemory, Far: schedule.Network}}
}

func TestSituationPlans(t *testing.T) {
	far := situation(0, 1, 2, 3, 4, 5, 6, 7)
	require.Equal(t, schedule.Ring, far.Plan(1<<20, 4, true).Method, "ring order by default")
	any := far
	any.Any = true
	p := any.Plan(1<<15, 4, true)
	require.Equal(t, schedule.Halving, p.Method, "fewer latencies for the same bytes")
	require.Less(t, any.Predict(p, 1<<15, 4), far.Predict(far.Plan(1<<15, 4, true), 1<<15, 4))
	require.NotEmpty(t, p.Why)
	require.Zero(t, p.Segment%schedule.BlockLen)
	require.Equal(t, schedule.Direct, any.Plan(1<<20, 2, false).Method, "partial results do not fit into 16 bits")

	pairs := situation(0, 0, 0, 0, 1, 1, 1, 1)
	pairs.Any = true
	require.Equal(t, schedule.Hierarchical, pairs.Plan(16<<20, 4, true).Method, "memory is faster than the network")

	shared := situation(0, 0, 0)
	shared.Any, shared.Shared = true, true
	require.Equal(t, schedule.Shared, shared.Plan(1<<20, 4, true).Method)
	shared.Force = schedule.Tree
	require.Equal(t, schedule.Tree, shared.Plan(1<<20, 4, true).Method)
	require.Equal(t, schedule.Shared, shared.Plan(1<<20, 2, false).Method, "Tree cannot reduce these")
	require.False(t, shared.AlwaysShared())
	shared.Force = schedule.Ring
	require.Equal(t, schedule.RingAhead, shared.Plan(1<<10, 4, true).Ahead)
	shared.Force, shared.Table = 0, schedule.Only(3, schedule.Ring, 1<<17)
	require.False(t, shared.AlwaysShared())
	shared.Table = nil
	require.True(t, shared.AlwaysShared())
	shared.Force = schedule.Hierarchical
	require.Equal(t, schedule.Shared, shared.Plan(1<<20, 4, true).Method, "there is one host")
}

// A method that sends whole vectors is not used for those that are too long for one message.
func TestSituationPlansWithoutHugeMessages(t *testing.T) {
	const tooMany = 1 << 30 // elements of 4 bytes: one byte more than a message can have
	for m, most := range map[schedule.Method]int{
		schedule.OneShot: tooMany - 1, schedule.Bruck: tooMany/2 - 1, schedule.Collected: tooMany/2 - 1,
	} {
		s := situation(0, 1, 2, 3)
		s.Force = m
		require.Equal(t, m, s.Plan(most, 4, true).Method)
		require.Equal(t, schedule.Ring, s.Plan(tooMany, 4, true).Method)
		s.Force, s.Table = 0, &schedule.Table{Ranks: 4, Entries: []schedule.Entry{{Bytes: 4, Method: m, Segment: 4}}}
		require.Equal(t, m, s.Plan(most, 4, true).Method)
		require.Equal(t, schedule.Ring, s.Plan(tooMany, 4, true).Method)
	}
}

// Predictions grow with the number of bytes, for every method.
func TestPredictGrows(t *testing.T) {
	for size := 2; size <= 17; size++ {
		hosts := make([]int, size)
		for r := range hosts {
			hosts[r] = r / 2
		}
		s := situation(hosts...)
		s.Any = true
		for _, m := range s.Candidates() {
			s.Force = m
			before := time.Duration(0)
			for count := 1; count < 1<<24; count *= 8 {
				took := s.Predict(s.Plan(count, 4, true), count, 4)
				require.Greater(t, took, before, "%v, %d elements, %d ranks", m, count, size)
				before = took
			}
		}
	}
	alone := situation(0)
	require.Zero(t, alone.Predict(alone.Plan(100, 4, true), 100, 4))
}

func TestCandidates(t *testing.T) {
	s := situation(0, 0, 1)
	require.Equal(t, []schedule.Method{schedule.OneShot, schedule.Bruck, schedule.Collected, schedule.Direct, schedule.Ring}, s.Candidates())
	s.Any, s.Shared = true, true
	require.Equal(t, []schedule.Method{schedule.OneShot, schedule.Bruck, schedule.Collected, schedule.Direct, schedule.Ring, schedule.Shared, schedule.Halving, schedule.Tree, schedule.Hierarchical}, s.Candidates())
	for _, m := range s.Candidates() {
		got, err := schedule.ParseMethod(m.String())
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	_, err := schedule.ParseMethod("butterfly")
	require.ErrorContains(t, err, "halving-doubling")
}

func TestTable(t *testing.T) {
	table := &schedule.Table{Ranks: 3, Entries: []schedule.Entry{
		{Bytes: 4, Method: schedule.OneShot, Segment: 1 << 18, Measured: 10},
		{Bytes: 1 << 10, Method: schedule.Direct, Segment: 1 << 18, Measured: 1034},
		{Bytes: 1 << 20, Method: schedule.Ring, Segment: 1 << 17, Measured: 1 << 20},
	}}
	s := situation(0, 1, 2)
	s.Table = table
	for count, want := range map[int]schedule.Method{0: schedule.OneShot, 1: schedule.OneShot, 15: schedule.OneShot, 17: schedule.Direct, 8000: schedule.Direct, 8200: schedule.Ring, 1 << 24: schedule.Ring} {
		require.Equal(t, want, s.Plan(count, 4, true).Method, "%d elements", count)
	}
	p := s.Plan(1<<20, 4, true)
	require.Equal(t, 1<<15, p.Segment)
	require.NotEqual(t, p.Why, s.Plan(1<<20+1, 4, true).Why, "too far from any measured size")
	_, known := table.Expect(3, 4<<20+4)
	require.False(t, known)
	require.Equal(t, schedule.RingAhead, p.Ahead)
	for bytes, want := range map[int]time.Duration{1: 10, 4: 10, 514: 522, 1 << 10: 1034, 1 << 21: 1 << 21} {
		got, ok := table.Expect(3, bytes)
		require.True(t, ok)
		require.Equal(t, want, got, "%d bytes", bytes)
	}
	_, ok := table.Expect(4, 1)
	require.False(t, ok, "another size")
	s.Hosts = []int{0, 1, 2, 3}
	require.Equal(t, schedule.OneShot, s.Plan(17, 4, true).Method, "another size")
	_, ok = (*schedule.Table)(nil).Expect(3, 1)
	require.False(t, ok)
	_, ok = schedule.Only(3, schedule.Ring, 1<<17).Expect(3, 1)
	require.False(t, ok, "nothing was measured")
}

// A table is not used where its method is impossible, or another one is forced.
func TestTableOfImpossibleMethods(t *testing.T) {
	const count = 1 << 20
	for _, c := range []struct {
		entry   schedule.Method
		any     bool
		force   schedule.Method
		partial bool
		want    schedule.Method
	}{
		{schedule.Ring, false, 0, true, schedule.Ring},
		{schedule.Ring, false, 0, false, schedule.Direct},
		{schedule.Halving, true, 0, true, schedule.Halving},
		{schedule.Halving, false, 0, true, schedule.Ring},
		{schedule.Halving, true, 0, false, schedule.Direct},
		{schedule.Ring, false, schedule.OneShot, true, schedule.OneShot},
	} {
		s := situation(0, 1, 2)
		s.Any, s.Force = c.any, c.force
		s.Table = &schedule.Table{Ranks: 3, Entries: []schedule.Entry{{Bytes: 4 * count, Method: c.entry, Segment: 1 << 17, Measured: time.Second}}}
		require.Equal(t, c.want, s.Plan(count, 4, c.partial).Method, "%+v", c)
		_, known := s.Expect(count, 4, c.partial)
		require.Equal(t, c.entry == c.want, known, "%+v", c)
	}
}

// On many hosts with slow links, halving is chosen where latency counts, and the ring
// where bytes do; on hosts of several ranks, fewer bytes between hosts win.
func TestAnyOrderOnMeasuredLinks(t *testing.T) {
	hosts := make([]int, 16)
	for r := range hosts {
		hosts[r] = r
	}
	for _, c := range []struct {
		hosts []int
		far   schedule.Cost
		bytes int
		want  schedule.Method
	}{
		{hosts, schedule.Cost{Latency: 800_000, PerByte: 80, Fold: .04}, 64 << 10, schedule.Halving},
		{hosts, schedule.Cost{Latency: 340_000, PerByte: 96, Fold: .04}, 64 << 10, schedule.Halving},
		{hosts, schedule.Cost{Latency: 340_000, PerByte: 96, Fold: .04}, 128 << 10, schedule.Halving},
		{hosts, schedule.Cost{Latency: 340_000, PerByte: 96, Fold: .04}, 256 << 10, schedule.Ring},
		{hosts, schedule.Cost{Latency: 150_000, PerByte: 80, Fold: .04}, 256 << 10, schedule.Ring},
		{hosts, schedule.Cost{Latency: 150_000, PerByte: 80, Fold: .04}, 4 << 20, schedule.Ring},
		{[]int{0, 0, 1, 1}, schedule.Cost{Latency: 60_000, PerByte: 8, Fold: .04}, 4 << 20, schedule.Hierarchical},
	} {
		s := schedule.Situation{Hosts: c.hosts, Links: schedule.Links{Near: schedule.Loopback, Far: c.far}, Any: true}
		require.Equal(t, c.want, s.Plan(c.bytes/4, 4, true).Method, "%d bytes, %+v", c.bytes, c.far)
	}
}
