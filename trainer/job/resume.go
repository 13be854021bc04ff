package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// compareResume returns an error if only some ranks resume: all take part in that.
func compareResume(ctx context.Context, r *rank) error {
	v, mine, all := r.group.View(), []int64{0}, make([]int64, r.group.Size())
	if r.training.Spec.Saving.Resume != "" {
		mine[0] = 1
	}
	if err := collective.AllGather(ctx, r.group, all, mine); err != nil {
		return fmt.Errorf("comparing whether all machines resume: %w", err)
	}
	var without []string
	for rank, resumes := range all {
		if node := v.Members[rank].Node; resumes == 0 && !slices.Contains(without, node) {
			without = append(without, node)
		}
	}
	if len(without) == 0 || slices.Max(all) == 0 {
		return nil
	}
	return crew.AgreeUsage(ctx, r.group, fmt.Errorf("--resume is missing on %s: give it on every machine, also on those without a checkpoint", enumeration(without)))
}

// resume finds the newest intact checkpoint of --resume on any machine, and gives rank 0
// its parameters and state. The trainer distributes them from there, so other machines
// need no file. All ranks get the best evaluation so far.
func (r *rank) resume(ctx context.Context, backend nn.Backend, p *nn.Params) (state trainer.State, best trainer.Best, err error) {
	path, mine := "", []int64{-1}
	if r.leader {
		state, best, path, err = readNewest(r.training, r.rows.Sum(), backend, p)
		if path != "" {
			mine[0] = int64(state.Step)
		}
	}
	if err := crew.AgreeUsage(ctx, r.group, err); err != nil {
		return state, best, err
	}
	steps := make([]int64, r.group.Size())
	if err := collective.AllGather(ctx, r.group, steps, mine); err != nil {
		return state, best, fmt.Errorf("looking for the newest checkpoint: %w", err)
	}
	newest := slices.Max(steps)
	if newest < 0 {
		return state, best, crew.AgreeUsage(ctx, r.group, fmt.Errorf("--resume %s: no machine has an intact checkpoint there", r.training.Spec.Saving.Resume))
	}
	source := slices.Index(steps, newest)
	if source != 0 {
		if state, err = r.moveState(ctx, source, p, state); err != nil {
			return state, best, fmt.Errorf("sending the checkpoint of rank %d to rank 0: %w", source, err)
		}
	}
	if best, err = r.shareBest(ctx, source, best); err != nil {
		return state, best, fmt.Errorf("sending the best weights of rank %d to the others: %w", source, err)
	}
	if r.group.Rank() == source {
		r.events.Emit(&event.Resumed{Path: path, Step: int(newest)})
	}
	state.Step = int(newest)
	return state, best, nil
}

// readNewest reads the newest intact checkpoint of this machine. sum is that of the data. path is
// "" if there is none.
func readNewest(s *Training, sum string, backend nn.Backend, p *nn.Params) (state trainer.State, best trainer.Best, path string, err error) {
	t, found, broken, err := checkpoint.Latest(s.Spec.Saving.Resume, s.fitsHeader(p.List))
	var misfit *misfitError
	switch {
	case err == nil:
		if state, err = s.restore(found, t, backend, p); err == nil {
			best, err = restoreBest(found, t, p, sum)
		}
		return state, best, found, err
	case len(broken) > 0 && errors.As(broken[0], &misfit):
		return state, best, "", fmt.Errorf("--resume %s: %w", s.Spec.Saving.Resume, broken[0])
	case !errors.Is(err, checkpoint.ErrNone) && !errors.Is(err, fs.ErrNotExist):
		return state, best, "", fmt.Errorf("--resume %s: %w", s.Spec.Saving.Resume, err)
	}
	return state, best, "", nil
}

// moveState sends the parameters and the state that source has read to the other ranks.
func (r *rank) moveState(ctx context.Context, source int, p *nn.Params, mine trainer.State) (trainer.State, error) {
	if err := r.group.Broadcast(ctx, trainer.Operand(p.Values), source); err != nil {
		return mine, err
	}
	out := trainer.State{Slots: map[string][]float32{}}
	for _, name := range r.training.optimizer.Slots() {
		arena := make([]float32, p.Values.Len())
		if r.group.Rank() == source {
			copy(arena, mine.Slots[name])
		}
		if err := collective.Broadcast(ctx, r.group, arena, source); err != nil {
			return out, err
		}
		out.Slots[name] = arena
	}
	if err := r.moveRoundSlots(ctx, source, p.Values.Len(), mine, out.Slots); err != nil {
		return out, err
	}
	return out, r.moveResiduals(ctx, source, p.Values.Len(), mine.Residuals, &out)
}

// moveResiduals sends the residuals of all ranks from source to rank 0.
func (r *rank) moveResiduals(ctx context.Context, source, elements int, mine [][]float32, to *trainer.State) error {
	count := []int64{int64(len(mine))}
	if err := collective.Broadcast(ctx, r.group, count, source); err != nil {
		return err
	}
	for k := range int(count[0]) {
		switch r.group.Rank() {
		case source:
			if err := r.group.Send(ctx, collective.Of(mine[k]), 0); err != nil {
				return err
			}
		case 0:
			arena := make([]float32, elements)
			if err := r.group.Recv(ctx, collective.Of(arena), source); err != nil {
				return err
			}
			to.Residuals = append(to.Residuals, arena)
		}
	}
	return nil
}

// latest returns the newest intact checkpoint that check accepts. Its errors are for the
// user.
func latest(dir string, check checkpoint.Check) (t checkpoint.Training, path string, broken []error, err error) {
	t, path, broken, err = checkpoint.Latest(dir, check)
	var misfit *misfitError
	switch {
	case errors.Is(err, checkpoint.ErrNone) && len(broken) > 0 && errors.As(broken[0], &misfit):
		return t, path, broken, fmt.Errorf("--resume %s: %w", dir, broken[0])
	case errors.Is(err, checkpoint.ErrNone) && len(broken) > 0:
		return t, path, broken, fmt.Errorf("--resume %s contains no intact checkpoint; the newest: %w", dir, broken[0])
	case errors.Is(err, checkpoint.ErrNone):
		return t, path, broken, fmt.Errorf("--resume %s contains no checkpoint (a file such as %s)", dir, checkpoint.FileName(50))
	case err != nil:
		return t, path, broken, fmt.Errorf("--resume %s: %w", dir, err)
	}
	return t, path, broken, nil
}

// fitsHeader returns a Check that accepts checkpoints of a model with these parameters and
// the config's optimizer.
func (s *Training) fitsHeader(params []*nn.Param) checkpoint.Check {
	return func(h checkpoint.Header) error {
		if !checkpoint.Summed(h.Metadata) {
			return errors.New("not a checkpoint: it has no SHA-256 of its contents")
		}
		return fits(h, params, s.optimizer.Slots())
	}
}

// checkStep returns an error for a checkpoint that is beyond the last step of this
// training.
func (s *Training) checkStep(path string, t checkpoint.Training) error {
	if last := s.Spec.Updates(s.Steps, s.AllWorkers()); t.Step > last {
		return fmt.Errorf("%s is at step %d, beyond the %d of this run: raise --steps", path, t.Step, last)
	}
	return nil
}

// restore sets the parameters to a checkpoint that fits them, and returns the state to
// resume from.
func (s *Training) restore(path string, t checkpoint.Training, backend nn.Backend, p *nn.Params) (trainer.State, error) {
	state := trainer.State{Step: t.Step, Slots: map[string][]float32{}}
	if err := s.checkStep(path, t); err != nil {
		return state, err
	}
	if err := setWeights(path, backend, p, t.Weights); err != nil {
		return state, err
	}
	for name, saved := range t.Slots {
		arena, err := tensorArena(p, saved)
		if err != nil {
			return state, fmt.Errorf("%s: %w", path, err)
		}
		state.Slots[name] = arena
	}
	if !keepsResiduals(s, t) {
		t.Residuals = nil
	}
	for _, saved := range t.Residuals {
		arena, err := tensorArena(p, saved)
		if err != nil {
			return state, fmt.Errorf("%s: %w", path, err)
		}
		state.Residuals = append(state.Residuals, arena)
	}
	return state, nil
}

// keepsResiduals reports whether the residuals of a checkpoint have the unit of this run's.
// In rounds they are changes of weights. Otherwise they are gradients, summed either over rows or
// over the means of micro-batches.
func keepsResiduals(s *Training, t checkpoint.Training) bool {
	was, _, _ := strings.Cut(t.Notes["strategy"], ",")
	wasInRounds := was == localSGD || was == diLoCo
	if s.Spec.inRounds() || wasInRounds {
		return s.Spec.inRounds() && wasInRounds
	}
	return (s.reduce == trainer.ReduceSum) == (t.Notes["reduce"] == trainer.ReduceSum.String())
}

func listing(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// checkResume reports, before anything starts, whether --resume can work, and warns of
// what has changed since the checkpoint was written. In a job of several machines only one
// needs the checkpoint, and which one is not known yet.
func (s *Training) checkResume(rows catalog.Rows, stderr io.Writer) error {
	dir := s.Spec.Saving.Resume
	if dir == "" {
		return nil
	}
	if steps, _ := checkpoint.Steps(dir); len(steps) == 0 && s.Spec.Place.Nodes > 1 {
		return nil // it may be on another machine
	}
	model, err := rows.Declare()
	if err != nil {
		return err
	}
	t, path, broken, err := latest(dir, s.fitsHeader(model.Declared()))
	var misfit *misfitError
	switch {
	case err != nil && len(broken) > 0 && !errors.As(err, &misfit) && s.Spec.Place.Nodes > 1:
		fmt.Fprintf(stderr, "ringtrain: warning: %v; another machine must have one\n", err)
		return nil
	case errors.As(err, &misfit):
		return whyMisfit(s, err, newestNotes(dir), rows.Sum())
	case err != nil:
		return err
	}
	if err := s.checkStep(path, t); err != nil {
		return err
	}
	for _, err := range broken {
		fmt.Fprintf(stderr, "ringtrain: warning: %v; resuming from the one before\n", err)
	}
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	blas := backend.BLAS()
	if s.Placement.OnGPU() {
		blas = s.multiplier()
	}
	changed := s.changed(t.Notes, rows.Sum(), blas)
	for _, d := range differences(t.Notes, rows.Notes()) {
		changed = append(changed, fmt.Sprintf("the %s of the data (%s, was %s)", d.name, d.now, d.was))
	}
	if b, _ := bestOf(t); b.Found() && t.Notes[noteSum] != rows.Sum() {
		changed = append(changed, "the best evaluation, which is dropped because it was of other data")
	}
	if n := len(t.Residuals); n > 0 && (n != s.AllWorkers() || s.Compression.Form == trainer.Exact || !keepsResiduals(s, t)) {
		changed = append(changed, fmt.Sprintf("compression residuals of %d workers, which are dropped", n))
	}
	if len(changed) > 0 {
		fmt.Fprintf(stderr, "ringtrain: warning: changed since %s: %s; the result will differ from that of an uninterrupted run\n", path, strings.Join(changed, ", "))
	}
	return nil
}

// noteSum is the note of checkpoints that identifies the rows: their catalog.Rows.Sum.
const noteSum = "data_sha256"

// changed lists what differs from when a checkpoint was written and affects the result.
func (s *Training) changed(notes map[string]string, sum, blas string) []string {
	var out []string
	if now, was := s.Spec.strategyText(), cmp.Or(notes["strategy"], allReduce); now != was {
		out = append(out, fmt.Sprintf("--strategy (%s, was %s)", now, was))
	}
	compressed := cmp.Or(notes["compress"], "none") // not in older checkpoints
	if now := s.Compression.String(); compressed != now {
		out = append(out, fmt.Sprintf("--compress (%s, was %s)", now, compressed))
	}
	order := "ring"
	if s.Spec.Order.HostOrder() != collective.RingOrder {
		order = s.Spec.Order.Order
	}
	if was := cmp.Or(notes["order"], "ring"); was != order {
		out = append(out, fmt.Sprintf("--order (%s, was %s)", order, was))
	}
	for _, n := range []struct{ what, note, now string }{
		{"the number of workers", "workers", strconv.Itoa(s.AllWorkers())},
		{"--batch", "batch", strconv.Itoa(s.Batch)},
		{"--accumulate", "accumulate", strconv.Itoa(s.micro)},
		{"--reduce", "reduce", s.reduce.String()},
		{"--seed", "seed", strconv.FormatUint(s.Spec.Seed, 10)},
		{"the library for matrix products", "blas", blas},
	} {
		if notes[n.note] != n.now {
			out = append(out, fmt.Sprintf("%s (%s, was %s)", n.what, n.now, notes[n.note]))
		}
	}
	return append(out, changedModel(s, notes, sum)...)
}

// changedModel lists what differs of what decides which parameters there are: the data and the
// config.
func changedModel(s *Training, notes map[string]string, sum string) []string {
	var out []string
	for _, option := range s.Dataset.Info().Options.List() {
		if was := notes[option.Name]; was != option.Value {
			out = append(out, fmt.Sprintf("--%s (%s, was %s)", option.Name, cmp.Or(option.Value, "not given"), cmp.Or(was, "not given")))
		}
	}
	switch now, was := s.Dataset.Info().Name, cmp.Or(notes["data"], DefaultData); {
	case notes[noteSum] == sum:
	case now != was:
		out = append(out, fmt.Sprintf("--data (%s, was %s)", now, was))
	default:
		out = append(out, "the data")
	}
	old, err := config.Parse("checkpoint", notes["config"], nil)
	for _, section := range []string{"model", "task", "optimizer"} {
		if err != nil || sectionText(old, section) != sectionText(s.Config, section) {
			out = append(out, "["+section+"]")
		}
	}
	return out
}

// whyMisfit adds to an error about parameters or slots that do not fit what has changed since the
// checkpoint was written.
func whyMisfit(s *Training, err error, notes map[string]string, sum string) error {
	changed := changedModel(s, notes, sum)
	if len(changed) == 0 {
		return err
	}
	return fmt.Errorf("%w; changed since then: %s", err, strings.Join(changed, ", "))
}

// sectionText returns a section as JSON.
func sectionText(c *config.Config, name string) string {
	text, _ := c.SectionJSON(name)
	return string(text)
}

// Newest returns the step and the directory of the newest intact checkpoint in some
// directories, -1 if there is none. "" is no directory.
func Newest(dirs ...string) (step int, in string) {
	step = -1
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if t, _, _, err := checkpoint.Latest(dir); err == nil && t.Step > step {
			step, in = t.Step, dir
		}
	}
	return step, in
}
