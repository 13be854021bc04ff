package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// The values of --tune that name no file.
const (
	tuneAuto = "auto"
	tuneOff  = "off"
)

// orderFlags are the flags of a command that reduces.
type orderFlags struct {
	order string
	tune  string
	given bool // --order, be it the default
}

// register adds the flags to those of a command.
func (f *orderFlags) register(cmd *cobra.Command) {
	f.registerOrder(cmd)
	under(cmd, networkFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.tune, "tune", tuneAuto, "choose the algorithm of each size from `TABLE`: auto (what ringtrain tune saved for these ranks, if anything), off, or a file; rank 0's choice counts")
	})
}

func (f *orderFlags) registerOrder(cmd *cobra.Command) {
	under(cmd, networkFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.order, "order", collective.RingOrder.String(), "`ORDER` of additions: ring (the same bits on every transport) or any (more algorithms; the same bits on every rank and in every run with the same plan)")
	})
}

// check finds what is wrong with the flags alone.
func (f *orderFlags) check() error {
	if _, err := collective.ParseOrder(f.order); err != nil {
		return fmt.Errorf("--order: %w", err)
	}
	if f.tune == "" {
		return errors.New("--tune is empty: name a file that ringtrain tune made, or say auto or off")
	}
	return nil
}

// chosen is the order. check has seen that it is one; what has no such flag
// keeps ring order.
func (f *orderFlags) chosen() collective.Order {
	o, _ := collective.ParseOrder(f.order)
	return o
}

// deviceOrder is the order for vectors on GPUs: any, unless ring order was asked
// for, as NCCL keeps none.
func (f *orderFlags) deviceOrder() collective.Order {
	if f.given {
		return f.chosen()
	}
	return collective.AnyOrder
}

// apply has the group use the table that rank 0 is told to use. All ranks call
// it, whatever they are told themselves, so no difference of flags or files
// makes them differ.
func (f *orderFlags) apply(ctx context.Context, g *collective.Group, secured bool, events event.Sink) error {
	var t *schedule.Table
	var path string
	var wrong error
	if g.Rank() == 0 && f.tune != tuneOff {
		path, t, wrong = f.load(fingerprint(g, f.chosen(), secured))
	}
	if err := agreeUsage(ctx, g, wrong); err != nil {
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

// checkTable finds out before anything starts whether there is a table in the
// file of --tune, and whether it is for so many ranks. Of several machines only
// that of rank 0 needs it, and which that is shows later.
func (f *orderFlags) checkTable(ranks, nodes int) error {
	if nodes > 1 || f.tune == "" || f.tune == tuneAuto || f.tune == tuneOff {
		return nil
	}
	there, _, err := readTable(f.tune)
	if err != nil {
		return err
	}
	if there.Ranks != ranks {
		return fmt.Errorf("--tune: %s was made for %d ranks, not for %d: make one with ringtrain tune, or say --tune off", f.tune, there.Ranks, ranks)
	}
	return nil
}

// readTable reads a table, and what it is good for.
func readTable(path string) (bench.Fingerprint, *schedule.Table, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return bench.Fingerprint{}, nil, fmt.Errorf("--tune: %w", err)
	}
	there, t, err := bench.DecodeTable(text)
	if err != nil {
		err = fmt.Errorf("--tune: %s is no table of this version: %w; make it again with ringtrain tune, or say --tune off", path, err)
	}
	return there, t, err
}

// load reads the table for a fingerprint; nil where there is none.
func (f *orderFlags) load(here bench.Fingerprint) (string, *schedule.Table, error) {
	path := f.tune
	if path == tuneAuto {
		var found bool
		if path, found = data.FindCached(here.Name()); !found {
			return "", nil, nil
		}
	}
	there, t, err := readTable(path)
	if f.tune == tuneAuto && errors.Is(err, fs.ErrNotExist) { // removed since
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	if differs := here.Differs(there); differs != "" {
		return "", nil, fmt.Errorf("--tune: %s was made for others (%s differ): make one with ringtrain tune, or say --tune off", path, differs)
	}
	return path, t, nil
}

// fingerprint is what a table measured in this group is good for, as rank 0
// sees it.
func fingerprint(g *collective.Group, o collective.Order, secured bool) bench.Fingerprint {
	s := g.Situation()
	f := bench.Fingerprint{Ranks: g.Size(), Hosts: s.Hosts, Streams: g.Streams(), CPU: processor(), Version: version(), Order: o.String()}
	if b := thisBuild(); b.Revision != "" {
		f.Version += " " + b.Revision
	}
	switch {
	case s.Near == schedule.InProcess:
		f.Transport = "inproc"
	case s.Shared:
		f.Transport = cluster.TransportSHM
	case secured:
		f.Transport = "tcp, TLS"
	default:
		f.Transport = cluster.TransportTCP
	}
	return f
}

// processor is the model of this machine's CPU, where it is known.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
