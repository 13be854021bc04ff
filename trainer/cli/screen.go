package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A screen shows a job to the user: events as JSON lines, or a table with a row per
// evaluation and, on a terminal, a progress bar below it. Everything that is not a result
// goes to stderr. Any goroutine may use it.
type screen struct {
	out, err io.Writer
	json     *event.Writer // nil for the table or the style
	style    logStyle      // nil for the table

	mu      sync.Mutex
	bar     *bottom // nil without a terminal
	steps   int
	before  int // steps done before this run
	last    event.Step
	stale   *event.Staleness // for the result
	target  *event.Target    // for the result
	samples int
	sent    int                               // bytes of gradients, by one worker
	share   struct{ exchange, total float64 } // milliseconds since the last row
	header  bool
	metrics event.Metrics // of the last row; nil before the first

	ended bool
}

func (a *app) newScreen(steps int, asJSON bool) *screen {
	show := &screen{out: a.stdout, err: a.stderr, steps: steps}
	if asJSON {
		show.json = event.NewWriter(a.stdout, 0)
		return show
	}
	if file, ok := a.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		show.bar = &bottom{w: file, columns: func() int { return columns(file) }, now: time.Now}
	}
	return show
}

// Emit is part of event.Sink.
func (s *screen) Emit(e event.Event) {
	if s.json != nil {
		s.json.Emit(e)
		resumed, ok := e.(*event.Resumed)
		if !ok || resumed.Step < s.steps {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case *event.View:
		s.view(e)
	case *event.Step:
		s.last = *e
		s.samples += e.Samples
		s.sent += e.WireBytes
		s.share.exchange += e.ExchangeMs
		s.share.total += e.ComputeMs + e.ExchangeMs + e.UpdateMs
		if s.bar != nil && !s.ended && s.bar.due() {
			s.bar.draw(s.progress())
		}
	case *event.Eval:
		s.evaluated(e)
	case *event.Tuned:
		s.line(s.err, e.String())
	case *event.Checkpoint:
		s.line(s.err, fmt.Sprintf("checkpoint of step %d: %s%s", e.Step, e.Path, instead(e.InsteadOf)))
	case *event.SaveRetry:
		s.line(s.err, e.String())
	case *event.SaveWait:
		s.line(s.err, e.String())
	case *event.CheckpointFailed:
		if e.Last {
			return // the job fails, and says why
		}
		s.line(s.err, fmt.Sprintf("warning: step %d was not saved: %s", e.Step, e.Error))
	case *event.Weights:
		what := "weights"
		if e.Best {
			what = "best weights"
		}
		s.line(s.err, what+" saved to "+e.Path+instead(e.InsteadOf))
	case *event.Resumed:
		s.resumed(e)
	case *event.Switched:
		s.line(s.err, e.String())
	case *event.Lost:
		if e.Left > 0 { // otherwise the job's error says it
			s.line(s.err, "warning: "+e.String())
		}
	case *event.Staleness:
		s.stale = e
	case *event.Target:
		s.target = e
	case *event.Stopped:
		s.line(s.err, fmt.Sprintf("stopped after %d steps", e.Steps))
	case *event.Result:
		s.end()
		final := ""
		if s.style != nil {
			final = s.style.final(e)
		}
		if final == "" {
			s.result(e)
			return
		}
		s.line(s.out, final)
		if s.target != nil {
			s.line(s.err, targetText(s.target, s.stale != nil))
		}
	}
}

// resumed says which checkpoint the training resumes from.
func (s *screen) resumed(e *event.Resumed) {
	s.before = e.Step
	if e.Step >= s.steps {
		s.line(s.err, fmt.Sprintf("nothing left to do: all %d steps are done (%s); to train longer, raise --steps, for example --steps %d", s.steps, e.Path, 2*s.steps))
		return
	}
	s.line(s.err, fmt.Sprintf("resuming from step %d: %s", e.Step, e.Path))
}

// instead says that a file was written to another place than requested.
func instead(of string) string {
	if of == "" {
		return ""
	}
	return ", because " + of + " cannot be written"
}

// Log is part of crew.Display.
func (s *screen) Log(name string, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := string(line)
	if name != "" {
		text = "[" + name + "] " + text
	}
	s.line(s.err, text)
}

// Notice is part of crew.Display: if another write is stuck, it does not wait for that.
func (s *screen) Notice(text string) {
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		s.line(s.err, text)
		return
	}
	fmt.Fprintln(s.err, text)
}

// close removes the progress bar.
func (s *screen) close() {
	if !s.mu.TryLock() {
		return // a write is stuck
	}
	defer s.mu.Unlock()
	s.end()
}

// end is close with mu held.
func (s *screen) end() {
	if s.bar != nil && !s.ended {
		s.bar.erase()
	}
	s.ended = true
}

func (s *screen) view(e *event.View) {
	nodes := map[string]int{}
	var order []string
	for _, m := range e.Members {
		if nodes[m.Node] == 0 {
			order = append(order, m.Node)
		}
		nodes[m.Node]++
	}
	for i, n := range order {
		order[i] = fmt.Sprintf("%s (%d)", n, nodes[n])
	}
	device := ""
	if e.Device != "" {
		device = "; here on " + e.Device
	}
	s.line(s.err, fmt.Sprintf("job %s epoch %d: %s on %s%s", e.Job, e.Epoch, countOf(len(e.Members), "worker"), strings.Join(order, ", "), device))
}

// columns returns the width of a terminal, or the usual width if it is unknown.
func columns(file *os.File) int {
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// progress returns the progress after the last step.
func (s *screen) progress() progress {
	return progress{done: s.last.Step, steps: s.steps, before: s.before, elapsed: time.Duration(s.last.Seconds * float64(time.Second)),
		loss: s.last.Loss, metrics: s.metrics, exchange: s.exchangeShare()}
}

// exchangeShare returns the share of the exchange in the time since the last row, in
// percent.
func (s *screen) exchangeShare() float64 {
	if s.share.total == 0 {
		return 0
	}
	return 100 * s.share.exchange / s.share.total
}

// evaluated shows an evaluation.
func (s *screen) evaluated(e *event.Eval) {
	s.metrics = e.Metrics.Shown()
	switch {
	case s.last.Step == 0: // a run with nothing left to do
	case s.style == nil:
		s.row(e)
	default:
		s.styled(e)
	}
}

// styled writes a row in a style of its own.
func (s *screen) styled(e *event.Eval) {
	if header := s.style.header(e); !s.header && header != "" {
		s.line(s.out, header)
	}
	s.header = true
	if row := s.style.row(e, e.Step >= s.steps); row != "" {
		s.line(s.out, row)
	}
}

// row writes one row of the table.
func (s *screen) row(e *event.Eval) {
	if !s.header {
		s.header = true
		names := ""
		for _, m := range s.metrics {
			names += fmt.Sprintf("  %8s", strings.ToUpper(m.Name))
		}
		s.line(s.out, fmt.Sprintf("%6s  %8s  %9s%s  %9s  %8s  %8s  %7s", "STEP", "LOSS", "TEST LOSS", names, "SAMPLES/S", "EXCHANGE", "SENT(MB)", "SECONDS"))
	}
	share := s.exchangeShare()
	s.share.exchange, s.share.total = 0, 0
	values := ""
	for _, m := range s.metrics {
		values += fmt.Sprintf("  %*.4f", max(8, len(m.Name)), m.Value)
	}
	mark := ""
	if e.Best {
		mark = "  *" // the last row with it is the best
	}
	s.line(s.out, fmt.Sprintf("%6d  %8.4f  %9.4f%s  %9.0f  %7.0f%%  %8.2f  %7.1f%s", e.Step, s.last.Loss, e.Loss, values,
		float64(s.samples)/max(e.Seconds, 1e-9), share, float64(s.sent)/1e6, e.Seconds, mark))
}

func (s *screen) result(e *event.Result) {
	sent := ""
	if e.Compress != "none" && e.WireBytes > 0 {
		sent = fmt.Sprintf("\ncompressed as %s: each worker sent %.2f MB of gradients, and would have sent %.3g times that", e.Compress, float64(e.WireBytes)/1e6, e.CompressionRatio)
	}
	stale := ""
	if s.stale != nil {
		stale = "\n" + s.stale.String()
	}
	target := ""
	if s.target != nil {
		target = "\n" + targetText(s.target, s.stale != nil)
	}
	speed := ""
	if e.SamplesPerSecond > 0 {
		left := ""
		if e.Left > 0 {
			left = fmt.Sprintf(" (%d at the end)", e.Left)
		}
		speed = fmt.Sprintf(" with %s%s in %.1f s (%.0f samples/s)", countOf(e.Workers, "worker"), left, e.Seconds, e.SamplesPerSecond)
	}
	best := ""
	if e.BestStep > 0 && e.BestStep != e.Steps {
		best = fmt.Sprintf("\nbest (*): %s %.4f after step %d", e.BestMetric, e.BestValue, e.BestStep)
	}
	s.line(s.out, fmt.Sprintf("\n%s after %d steps%s%s%s\nweights sha256 %s\nmatrix products: %s\nexchange: %s%s%s", outcome(e), e.Steps, speed, best, sent, e.WeightsSHA256, e.BLAS, exchangeText(e.Plan), stale, target))
}

// exchangeText describes how gradients were exchanged. The plan of one worker begins with
// "alone".
func exchangeText(plan string) string {
	if rest, ok := strings.CutPrefix(plan, "alone"); ok {
		return "none (1 worker)" + rest
	}
	return plan
}

// outcome returns the metrics of a result or, if it has none, the loss.
func outcome(e *event.Result) string {
	if shown := e.Metrics.Shown(); len(shown) > 0 {
		return metricTexts(shown, ", ")
	}
	return fmt.Sprintf("loss %.4f", e.Loss)
}

// metricTexts joins names and values of metrics.
func metricTexts(all event.Metrics, between string) string {
	texts := make([]string, len(all))
	for i, m := range all {
		texts[i] = fmt.Sprintf("%s %.4f", m.Name, m.Value)
	}
	return strings.Join(texts, between)
}

// line writes a line above the progress bar.
func (s *screen) line(w io.Writer, text string) {
	bar := s.bar != nil && !s.ended && s.bar.width > 0
	if bar {
		s.bar.erase()
	}
	fmt.Fprintln(w, text)
	if bar {
		s.bar.draw(s.progress())
	}
}
