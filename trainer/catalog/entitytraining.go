package catalog

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/ner"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// Results of an evaluation that tell about training: what spaCy calls losses, summed over the
// steps since the last evaluation, and the epoch of the last step, from 0.
const (
	lossTok2Vec = "loss_tok2vec"
	lossNer     = "loss_ner"
	epochName   = "epoch"
)

// An entityOrder is the order in which a rank sees documents.
type entityOrder interface {
	data.Order
	Epoch(step int) int
}

// An entityTraining is the task of a rank in a run.
type entityTraining struct {
	*trainer.ModelTask[ner.Batch]
	model   *ner.Recognizer
	order   entityOrder // of any micro-batch
	squares ner.Squares // since the last evaluation
	epoch   int
}

var _ trainer.Tracked = (*entityTraining)(nil)

// Load implements trainer.Task.
func (t *entityTraining) Load(step, micro int) (rows int, err error) {
	t.epoch = t.order.Epoch(step)
	return t.ModelTask.Load(step, micro)
}

// Learn implements trainer.Task.
func (t *entityTraining) Learn(p *nn.Pass) (loss nn.Buffer, weight int, err error) {
	loss, weight, err = t.ModelTask.Learn(p)
	s := t.model.Squares()
	t.squares.Vectors += s.Vectors
	t.squares.Scores += s.Scores
	return loss, weight, err
}

// Track implements trainer.Tracked.
func (t *entityTraining) Track(c nn.Counts) {
	c[lossTok2Vec] += t.squares.Vectors
	c[lossNer] += t.squares.Scores
	t.squares = ner.Squares{}
}

// Metrics implements trainer.Task.
func (t *entityTraining) Metrics(total nn.Counts) []trainer.Metric {
	all := t.ModelTask.Metrics(total)
	for _, name := range []string{lossTok2Vec, lossNer} {
		all = append(all, trainer.Metric{Name: name, Value: total[name], Lower: true, Detail: true})
	}
	return append(all, trainer.Metric{Name: epochName, Value: float64(t.epoch), Detail: true})
}
