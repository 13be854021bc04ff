package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// The lines of the notebooks, byte for byte. The last evaluation is the result's.
func TestLogStyles(t *testing.T) {
	accuracy := func(v float64) event.Metrics { return event.Metrics{{Name: "accuracy", Value: v, Fraction: true}} }
	for style, want := range map[string]string{
		"thinc": "0 \taccuracy: 0.112\n20 \taccuracy: 0.501\nFinal \taccuracy: 0.561\n",
		"ray":   "Iter 0: \taccuracy is 11.2\nIter 20: \taccuracy is 50.1\nFinal accuracy is 56.1.\n",
	} {
		var out, errs bytes.Buffer
		s := &screen{out: &out, err: &errs, steps: 40, style: logStyles[style]}
		for _, e := range []event.Event{
			&event.Step{Step: 1}, &event.Eval{Step: 1, Metrics: accuracy(.1123)}, &event.Step{Step: 21}, &event.Eval{Step: 21, Metrics: accuracy(.501)},
			&event.Step{Step: 40}, &event.Eval{Step: 40, Metrics: accuracy(.561)}, &event.Result{Steps: 40, Metrics: accuracy(.561)},
		} {
			s.Emit(e)
		}
		require.Equal(t, want, out.String())
		require.Empty(t, errs.String())
	}
	bits := &event.Eval{Step: 8, Metrics: event.Metrics{{Name: "bits", Value: 2.5}}}
	require.Equal(t, "Iter 7: \tbits is 2.500", logStyles["ray"].row(bits, false), "not in percent")
	require.Equal(t, "7 \tloss: 0.250", logStyles["thinc"].row(&event.Eval{Step: 8, Loss: .25}, false))
}

// The table of spaCy 3.8.18, byte for byte, and below it the result as usual.
func TestSpacyStyle(t *testing.T) {
	metrics := func(epoch, tok2vec, ner, f, p, r float64) event.Metrics {
		return event.Metrics{
			{Name: "ents_f", Value: f, Fraction: true}, {Name: "ents_p", Value: p, Fraction: true}, {Name: "ents_r", Value: r, Fraction: true}, {Name: "ents_f:PER", Value: .1, Detail: true},
			{Name: "loss_tok2vec", Value: tok2vec, Detail: true}, {Name: "loss_ner", Value: ner, Detail: true}, {Name: "epoch", Value: epoch, Detail: true},
		}
	}
	var out, errs bytes.Buffer
	s := &screen{out: &out, err: &errs, steps: 300, style: logStyles["spacy"]}
	s.Emit(&event.Step{Step: 1})
	s.Emit(&event.Eval{Step: 1, Metrics: metrics(0, 0, 35.833, 0, 0, 0)})
	s.Emit(&event.Step{Step: 201})
	s.Emit(&event.Eval{Step: 201, Metrics: metrics(1, 123.456, 6543.21, .7123, .75, .678)})
	require.Equal(t, ""+
		"E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE \n"+
		"---  ------  ------------  --------  ------  ------  ------  ------\n"+
		"  0       0          0.00     35.83    0.00    0.00    0.00    0.00\n"+
		"  1     200        123.46   6543.21   71.23   75.00   67.80    0.71\n", out.String())
	out.Reset()
	s.Emit(&event.Step{Step: 300})
	s.Emit(&event.Eval{Step: 300, Metrics: metrics(1, 1, 2, 1, 1, 1)})
	s.Emit(&event.Result{Steps: 300, Metrics: metrics(1, 1, 2, 1, 1, 1), WeightsSHA256: "abc"})
	require.Contains(t, out.String(), "  1     299          1.00      2.00  100.00  100.00  100.00    1.00\n\nents_f 1.0000")
	require.Contains(t, out.String(), "weights sha256 abc")

	out.Reset()
	plain := &screen{out: &out, err: &errs, steps: 300, style: logStyles["spacy"]}
	plain.Emit(&event.Step{Step: 1})
	plain.Emit(&event.Eval{Step: 1})
	require.Equal(t, "E    #       SCORE \n---  ------  ------\n  0       0    0.00\n", out.String(), "a task without metrics")
	require.Empty(t, errs.String())

	counted := spacyStyle{epoch: 3} // steps 1 to 3 are epoch 0
	for step, want := range map[int]string{
		3: "  0       2  2.5000   50.00    2.50", 4: "  1       3  2.5000   50.00    2.50", 7: "  2       6  2.5000   50.00    2.50",
	} {
		e := &event.Eval{Step: step, Metrics: event.Metrics{{Name: "bits", Value: 2.5}, {Name: "acc", Value: .5, Fraction: true}}}
		require.Equal(t, want, counted.row(e, false))
	}
}
