package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A progress says how far a run is.
type progress struct {
	done, steps int           // steps done of all
	before      int           // steps done before this run
	elapsed     time.Duration // since its first step began
	loss        float64
	metrics     event.Metrics // of the last evaluation; nil before the first
	exchange    float64       // share of exchange since then, in percent
}

// line formats the progress in at most this many columns: a bar, the count, and as much of
// the rest as fits, in order of importance. It is "" if not even the count fits.
func (p progress) line(columns int) string {
	share := float64(p.done) / float64(max(p.steps, 1))
	digits := len(fmt.Sprint(p.steps))
	count := fmt.Sprintf("%3.0f%% ", 100*share)
	after := fmt.Sprintf("%*d/%d", digits, p.done, p.steps)
	const least, most = 10, 30 // columns of the bar
	room := columns - len(count) - len(after) - len("[] ")
	for _, part := range p.parts() {
		if n := len(part) + 2; room-n >= least {
			after, room = after+"  "+part, room-n
		} else {
			break
		}
	}
	switch {
	case room >= least:
		return count + bar(share, min(room, most)) + " " + after
	case len(count)+len(after) <= columns:
		return count + after
	}
	return ""
}

func (p progress) parts() []string {
	rate := float64(p.done-p.before) / max(p.elapsed.Seconds(), 1e-9)
	left := time.Duration(float64(p.steps-p.done) / rate * float64(time.Second))
	if p.done <= p.before { // nothing to go by
		return nil
	}
	parts := []string{speed(rate), clock(p.elapsed) + " elapsed", clock(left) + " left", fmt.Sprintf("loss %.4f", p.loss)}
	if len(p.metrics) > 0 {
		parts = append(parts, metricTexts(p.metrics, "  "))
	}
	return append(parts, fmt.Sprintf("exchange %.0f%%", p.exchange))
}

// bar formats a bar of this many columns between brackets, filled to a share.
func bar(share float64, width int) string {
	full := min(int(share*float64(width)), width)
	head := ""
	if full < width {
		head = ">"
	}
	return "[" + strings.Repeat("=", full) + head + strings.Repeat(" ", width-full-len(head)) + "]"
}

func speed(rate float64) string {
	switch {
	case rate >= 100:
		return fmt.Sprintf("%.0f steps/s", rate)
	case rate >= 10:
		return fmt.Sprintf("%.1f steps/s", rate)
	}
	return fmt.Sprintf("%.2f steps/s", rate)
}

// clock formats a time as m:ss or h:mm:ss.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// A bottom redraws the last line of a terminal. Call erase before writing anything else to
// the terminal.
type bottom struct {
	w       io.Writer
	columns func() int
	now     func() time.Time
	drawn   time.Time // when it was, last
	width   int       // columns of what stands there
}

// drawEvery is the minimum time between two drawings. Faster changes are unreadable.
const drawEvery = 50 * time.Millisecond

// due reports whether it is time to draw again.
func (b *bottom) due() bool { return b.now().Sub(b.drawn) >= drawEvery }

// echo is room for the ^C that the terminal writes after the line.
const echo = len("^C")

// draw draws the line. It never reaches the last column, where some terminals
// begin a new line.
func (b *bottom) draw(p progress) {
	text := p.line(b.columns() - 1 - echo)
	width := utf8.RuneCountInString(text)
	fmt.Fprintf(b.w, "\r%s%s", text, strings.Repeat(" ", max(b.width-width, 0)))
	b.drawn, b.width = b.now(), max(b.width, width)
}

// erase removes the line.
func (b *bottom) erase() {
	if b.width > 0 {
		fmt.Fprintf(b.w, "\r%s\r", strings.Repeat(" ", b.width+echo))
	}
	b.width = 0
}
