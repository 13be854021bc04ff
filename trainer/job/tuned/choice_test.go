package tuned

import (
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

func TestChoiceCheck(t *testing.T) {
	for _, order := range []string{"", "ring", "any"} {
		require.NoError(t, (&Choice{Order: order, Table: Auto}).Check())
	}
	require.ErrorContains(t, (&Choice{Order: "tree", Table: Auto}).Check(), "--order must be ring or any")
	require.EqualError(t, (&Choice{Order: "ring"}).Check(), "--tune is empty: use the path of a file from ringtrain tune, or auto, or off")
}

// GPUs sum in any order unless the user chose ring order.
func TestOrders(t *testing.T) {
	for _, c := range []struct {
		Choice
		host, device collective.Order
	}{
		{Choice{}, collective.RingOrder, collective.AnyOrder},
		{Choice{Order: "ring"}, collective.RingOrder, collective.AnyOrder},
		{Choice{Order: "ring", Given: true}, collective.RingOrder, collective.RingOrder},
		{Choice{Order: "any", Given: true}, collective.AnyOrder, collective.AnyOrder},
		{Choice{Order: "any"}, collective.AnyOrder, collective.AnyOrder},
	} {
		require.Equal(t, c.host, c.HostOrder(), "%+v", c.Choice)
		require.Equal(t, c.device, c.DeviceOrder(), "%+v", c.Choice)
	}
}

// table returns a small table.
func table(ranks int) *schedule.Table {
	return &schedule.Table{Ranks: ranks, Entries: []schedule.Entry{
		{Bytes: 4, Method: schedule.OneShot, Segment: 4096, Measured: 1000},
		{Bytes: 1 << 20, Method: schedule.Ring, Segment: 65536, Measured: 9000},
	}}
}

// A file of --tune that cannot be used is an error before anything starts, unless another
// machine may have a valid one.
func TestCheckTable(t *testing.T) {
	dir := t.TempDir()
	good, broken := filepath.Join(dir, "good.json"), filepath.Join(dir, "broken.json")
	require.NoError(t, os.WriteFile(good, Encode(Fingerprint{Ranks: 3}, table(3)), 0o600))
	require.NoError(t, os.WriteFile(broken, []byte(`{"format":"ringtrain-tune/0"}`), 0o600))
	check := func(path string, ranks, nodes int) error { return (&Choice{Table: path}).CheckTable(ranks, nodes) }
	for _, none := range []string{"", Auto, Off} {
		require.NoError(t, check(none, 2, 1))
	}
	require.NoError(t, check(good, 3, 1))
	require.EqualError(t, check(good, 2, 1), "--tune: "+good+" was measured with 3 ranks, not 2: measure again with ringtrain tune, or use --tune off")
	require.ErrorIs(t, check(filepath.Join(dir, "none"), 2, 1), os.ErrNotExist)
	require.ErrorContains(t, check(broken, 2, 1), `is not a table of this version: its format is "ringtrain-tune/0", not "ringtrain-tune/1"; measure again`)
	require.NoError(t, check(broken, 2, 2), "the machine of rank 0 may have another file")
}

// A list records events.
type list struct {
	mu  sync.Mutex
	all []event.Event
}

func (l *list) Emit(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

// apply calls Apply on one rank for each Choice.
func apply(t *testing.T, choices ...Choice) (errs []error, told []*list, here Fingerprint) {
	views, transports := collective.Local(len(choices))
	errs, told = make([]error, len(choices)), make([]*list, len(choices))
	var all sync.WaitGroup
	for r := range choices {
		told[r] = &list{}
		all.Go(func() {
			g := collective.NewGroup(views[r], collective.OverTransport(views[r], transports[r]), collective.Options{})
			defer g.Close()
			if r == 0 {
				here = Here(g, choices[0].HostOrder(), false)
			}
			errs[r] = choices[r].Apply(t.Context(), g, false, told[r])
			if errs[r] == nil {
				errs[r] = g.Barrier(t.Context())
			}
		})
	}
	all.Wait()
	return errs, told, here
}

// Rank 0 decides which table all ranks use, and all ranks get its errors.
func TestApply(t *testing.T) {
	t.Setenv(data.EnvCache, t.TempDir())
	auto := Choice{Order: "ring", Table: Auto}
	errs, told, here := apply(t, auto, auto)
	for r := range errs {
		require.NoError(t, errs[r])
		require.Empty(t, told[r].all, "there is no table yet")
	}
	require.Equal(t, 2, here.Ranks)
	require.Equal(t, "inproc", here.Transport)
	require.Equal(t, "ring", here.Order)

	dir := t.TempDir()
	path, foreign := filepath.Join(dir, "t.json"), filepath.Join(dir, "f.json")
	require.NoError(t, os.WriteFile(path, Encode(here, table(2)), 0o600))
	other := here
	other.CPU, other.Version = "another", "another"
	require.NoError(t, os.WriteFile(foreign, Encode(other, table(2)), 0o600))

	errs, told, _ = apply(t, Choice{Order: "ring", Table: path}, Choice{Order: "ring", Table: "no such file"})
	for r := range errs {
		require.NoError(t, errs[r], "only rank 0 reads its file")
	}
	require.Contains(t, told[0].all, &event.Tuned{Path: path, Sizes: 2})

	errs, _, _ = apply(t, Choice{Order: "ring", Table: foreign}, auto)
	for _, err := range errs {
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, foreign+" was measured in another setting (different: CPU, version): measure again with ringtrain tune, or use --tune off")
	}

	for _, none := range []Choice{{Order: "ring", Table: Off}, {}} {
		errs, told, _ = apply(t, none, Choice{Order: "ring", Table: path})
		require.NoError(t, errs[0])
		require.Empty(t, told[0].all)
	}
}

// A table in the cache is found by its fingerprint.
func TestCachedTable(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(data.EnvCache, cache)
	f, here := Choice{Table: Auto}, Fingerprint{Ranks: 2, CPU: "x"}
	_, got, err := f.load(here)
	require.NoError(t, err)
	require.Nil(t, got)
	require.NoError(t, os.WriteFile(filepath.Join(cache, here.Name()), Encode(here, table(2)), 0o600))
	path, got, err := f.load(here)
	require.NoError(t, err)
	require.Equal(t, table(2), got)
	require.Equal(t, here.Name(), filepath.Base(path))
	here.CPU = "y"
	_, got, err = f.load(here)
	require.NoError(t, err)
	require.Nil(t, got, "another machine")
}

// Decode restores what Encode was given, to the nanosecond.
func TestTableSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(1, math.MaxInt32)
		want := &schedule.Table{Ranks: 2}
		bytes := 0
		for range rapid.IntRange(1, 8).Draw(t, "entries") {
			bytes += rapid.IntRange(1, 1<<20).Draw(t, "bytes")
			want.Entries = append(want.Entries, schedule.Entry{
				Bytes: bytes, Method: rapid.SampledFrom([]schedule.Method{schedule.Ring, schedule.OneShot}).Draw(t, "method"),
				Segment: rapid.IntRange(1, 1<<20).Draw(t, "segment"), Measured: time.Duration(ns.Draw(t, "measured")), Predicted: time.Duration(ns.Draw(t, "predicted")),
			})
		}
		_, got, err := Decode(Encode(Fingerprint{Ranks: 2}, want))
		if err != nil {
			t.Fatal(err)
		}
		require.Equal(t, want, got)
	})
}

// Every table that Decode accepts is usable.
func FuzzDecode(f *testing.F) {
	f.Add(Encode(Fingerprint{Ranks: 2, Hosts: []int{0, 0}}, table(2)))
	f.Add([]byte(`{"format":"ringtrain-tune/1","entries":[{"bytes":4,"algorithm":"ring","segment_bytes":1,"measured_us":1e300}]}`))
	f.Add([]byte(`{"format":"ringtrain-tune/1","entries":[{"bytes":4,"algorithm":"ring","segment_bytes":1,"measured_us":1,"predicted_us":-1e300}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, got, err := Decode(text)
		if err != nil {
			return
		}
		last := 0
		for _, e := range got.Entries {
			require.Greater(t, e.Bytes, last)
			require.Positive(t, e.Segment)
			require.Positive(t, e.Measured)
			last = e.Bytes
		}
	})
}
