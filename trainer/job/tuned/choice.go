package tuned

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/build"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// The values of Choice.Table that name no file.
const (
	Auto = "auto" // the table in the cache for these ranks, if there is one
	Off  = "off"  // no table
)

// A Choice says how the ranks of a job choose the algorithm of an allreduce.
type Choice struct {
	Order string // of additions: "ring" or "any"; "" means "ring"
	Given bool   // the user chose Order explicitly, so it also applies on GPUs
	Table string // Auto, Off or the path of a file
}

// Check reports the first mistake in f. A command sets Table.
func (f *Choice) Check() error {
	if _, err := collective.ParseOrder(f.Order); f.Order != "" && err != nil {
		return fmt.Errorf("--order must be %v or %v, not %q", collective.RingOrder, collective.AnyOrder, f.Order)
	}
	if f.Table == "" {
		return errors.New("--tune is empty: use the path of a file from ringtrain tune, or auto, or off")
	}
	return nil
}

// HostOrder returns the order of additions in host memory. Call Check first.
func (f *Choice) HostOrder() collective.Order {
	o, _ := collective.ParseOrder(f.Order)
	return o
}

// DeviceOrder returns the order of additions on GPUs: any, because NCCL does not keep
// ring order, unless the user chose an order.
func (f *Choice) DeviceOrder() collective.Order {
	if f.Given {
		return f.HostOrder()
	}
	return collective.AnyOrder
}

// Apply makes the group use rank 0's table. All ranks call it, whatever their own flags
// and files say, so they use the same table. secured means that traffic is encrypted.
func (f *Choice) Apply(ctx context.Context, g *collective.Group, secured bool, events event.Sink) error {
	var t *schedule.Table
	var path string
	var wrong error
	if g.Rank() == 0 && f.Table != "" && f.Table != Off {
		path, t, wrong = f.load(Here(g, f.HostOrder(), secured))
	}
	if err := crew.AgreeUsage(ctx, g, wrong); err != nil {
		return err
	}
	if err := g.Tune(ctx, t); err != nil {
		return err
	}
	if t != nil {
		events.Emit(&event.Tuned{Path: path, Sizes: len(t.Entries)})
	}
	return nil
}

// CheckTable reports, before anything starts, whether the file of --tune is a table for
// this number of ranks. Of several machines only rank 0's needs the file, and which one
// that is is not known yet, so CheckTable does nothing.
func (f *Choice) CheckTable(ranks, nodes int) error {
	if nodes > 1 || f.Table == "" || f.Table == Auto || f.Table == Off {
		return nil
	}
	there, _, err := readTable(f.Table)
	if err != nil {
		return err
	}
	if there.Ranks != ranks {
		return fmt.Errorf("--tune: %s was measured with %d ranks, not %d: measure again with ringtrain tune, or use --tune off", f.Table, there.Ranks, ranks)
	}
	return nil
}

// readTable reads a table and the Fingerprint that it is valid for.
func readTable(path string) (Fingerprint, *schedule.Table, error) {
	if err := data.ReadableAgain(path, "table"); err != nil {
		return Fingerprint{}, nil, fmt.Errorf("--tune: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Fingerprint{}, nil, fmt.Errorf("--tune: cannot read the table: %w; make one with ringtrain tune, or use --tune off", err)
	}
	there, t, err := Decode(text)
	if err != nil {
		err = fmt.Errorf("--tune: %s is not a table of this version: %w; measure again with ringtrain tune, or use --tune off", path, err)
	}
	return there, t, err
}

// load reads the table for a fingerprint. The table is nil if there is none.
func (f *Choice) load(here Fingerprint) (string, *schedule.Table, error) {
	path := f.Table
	if path == Auto {
		var found bool
		if path, found = data.FindCached(here.Name()); !found {
			return "", nil, nil
		}
	}
	there, t, err := readTable(path)
	if f.Table == Auto && errors.Is(err, fs.ErrNotExist) { // removed after FindCached
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	if differs := here.Differs(there); differs != "" {
		return "", nil, fmt.Errorf("--tune: %s was measured in another setting (different: %s): measure again with ringtrain tune, or use --tune off", path, differs)
	}
	return path, t, nil
}

// Here returns the Fingerprint of tables measured in this group, as rank 0 sees it.
func Here(g *collective.Group, o collective.Order, secured bool) Fingerprint {
	s := g.Situation()
	f := Fingerprint{Ranks: g.Size(), Hosts: s.Hosts, Streams: g.Streams(), CPU: machine.Processor(), Version: build.Version(), Order: o.String()}
	if b := build.Read(); b.Revision != "" {
		f.Version += " " + b.Revision
	}
	switch {
	case s.Near == schedule.InProcess:
		f.Transport = crew.TransportInProcess
	case s.Shared:
		f.Transport = cluster.TransportSHM
	case secured:
		f.Transport = "tcp, TLS"
	default:
		f.Transport = cluster.TransportTCP
	}
	return f
}
