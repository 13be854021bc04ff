package paramserver

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
)

// An owner is the share of a worker of Peers, and the gradients of its next update. It
// computes and does not communicate.
type owner struct {
	*share
	quorum  int // gradients in an update
	version int // updates made
	count   int // gradients so far; their sum is in params.Grads
	rows    int // behind them
	stale   Staleness
}

// add adds a gradient to the next update, or drops it if h.version is not that of the values
// here.
func (o *owner) add(worker int, h header, gradient []float32) error {
	if h.version < 0 || h.version > o.version || h.rows < 0 {
		return fmt.Errorf("paramserver: worker %d sends a gradient of %d rows for version %d, and the newest version is %d: run the same version of the program on every machine", worker, h.rows, h.version, o.version)
	}
	if len(gradient) == 0 {
		return nil
	}
	o.stale.note(o.version - h.version)
	if h.version != o.version {
		o.stale.Dropped++
		return nil
	}
	sum := o.params.Grads.Float32s()
	if o.count == 0 {
		copy(sum, gradient)
	} else if err := collective.FoldLocal(collective.Sum, collective.Of(sum), []collective.Vector{collective.Of(sum), collective.Of(gradient)}); err != nil {
		return fmt.Errorf("paramserver: adding the gradient of worker %d: %w", worker, err)
	}
	o.count++
	o.rows += h.rows
	return nil
}

// due reports whether to make the next update.
func (o *owner) due() bool { return o.count >= o.quorum }

// update makes the next update. step is that of the optimizer, and its sum of gradients is
// divided by their rows unless undivided is set.
func (o *owner) update(step int, undivided bool) error {
	if o.count > 1 { // otherwise the worker has checked it
		if bad := trainer.NotFinite(o.params); bad != 0 {
			return fmt.Errorf("paramserver: the summed gradient of %s in step %d is not finite: lower the learn rate", o.params.List[bad-1].Name, step+1)
		}
	}
	if o.rows > 0 {
		if !undivided {
			o.backend.Scale(o.params.Grads, 1/float32(o.rows))
		}
		o.state.Step = step
		o.share.update(1)
	}
	o.stale.Applied += o.count
	o.version++
	o.count, o.rows = 0, 0
	return nil
}

// end gives up the gradients of an update that does not come any more.
func (o *owner) end() {
	o.stale.Unused += o.count
	o.count, o.rows = 0, 0
}
