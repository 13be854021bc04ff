package bench

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// ScalingPlots are the names of the plots of a scaling run. runtime is the time
// of a step over the number of workers, ideally a horizontal line; its axis is
// logarithmic. speedup is how many times faster an allreduce is than what it is
// compared with; nothing is gained at 1. scalability is N*T(1)/T(N), ideally N.
func ScalingPlots() []string { return []string{"runtime", "speedup", "scalability"} }

// Plot draws one of ScalingPlots, as an image of 16 by 10 cm in a format of
// PlotFormat, with the published figures for the same numbers of workers.
func (s Scaling) Plot(w io.Writer, format, name string) error {
	rows := ScalingRows(s.Trials)
	if len(rows) == 0 {
		return errors.New("bench: nothing was measured that could be drawn")
	}
	p := plot.New()
	p.X.Label.Text = "workers"
	p.X.Tick.Marker = workerTicks(workersOf(rows))
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Millimeter/2
	var lines []curve
	switch name {
	case "runtime":
		p.Title.Text, p.Y.Label.Text = "time of a step, "+s.Compute, "ms (or s for 1000 steps)"
		lines = s.runtimes(rows)
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
	case "speedup":
		p.Title.Text, p.Y.Label.Text = "speedup, "+s.Compute, "times faster"
		lines = s.speedups(rows)
		p.Y.Min = 0
	case "scalability":
		p.Title.Text, p.Y.Label.Text = "scalability, "+s.Compute, "N*T(1)/T(N)"
		lines = s.scalabilities(rows)
		p.Y.Min = 0
	default:
		return fmt.Errorf("bench: plot %q is not known", name)
	}
	p.Add(plotter.NewGrid())
	lines = slices.DeleteFunc(lines, func(c curve) bool { return len(c.XYs) == 0 })
	if len(lines) == 0 {
		return errors.New("bench: nothing was measured that could be drawn")
	}
	for i, l := range lines {
		if err := l.draw(p, i); err != nil {
			return fmt.Errorf("bench: drawing: %w", err)
		}
	}
	if p.X.Max == p.X.Min { // one number of workers alone
		p.X.Min, p.X.Max = p.X.Min-1, p.X.Max+1
	}
	if name == "runtime" {
		p.Y.Min, p.Y.Max = p.Y.Min/1.5, p.Y.Max*4 // room for the legend
	} else {
		p.Y.Max *= 1.4
	}
	image, err := p.WriterTo(16*vg.Centimeter, 10*vg.Centimeter, format)
	if err != nil {
		return fmt.Errorf("bench: drawing: %w", err)
	}
	_, err = image.WriteTo(w)
	return err
}

// A curve is one line of a plot.
type curve struct {
	name  string
	ideal bool // dashed, without points
	points
}

// points are places on a plot, each with how far it may be off.
type points struct {
	plotter.XYs
	plotter.YErrors
}

func (c *curve) add(workers int, y, std float64) {
	if !(y > 0) || math.IsInf(y, 0) { // nothing was measured, or shorter than the clock can tell
		return
	}
	c.XYs = append(c.XYs, plotter.XY{X: float64(workers), Y: y})
	std = min(std, y/2) // below it the logarithm would end
	c.YErrors = append(c.YErrors, struct{ Low, High float64 }{std, std})
}

func (c *curve) draw(p *plot.Plot, i int) error {
	line, dots, err := plotter.NewLinePoints(c.XYs)
	if err != nil {
		return err
	}
	line.Color, dots.Color, dots.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
	if c.ideal {
		line.Color = color.Gray{Y: 0x60}
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(line)
		p.Legend.Add(c.name, line)
		return nil
	}
	bars, err := plotter.NewYErrorBars(c.points)
	if err != nil {
		return err
	}
	bars.Color = plotutil.Color(i)
	p.Add(line, dots, bars)
	p.Legend.Add(c.name, line, dots)
	return nil
}

func (s Scaling) runtimes(rows []ScalingRow) []curve {
	var lines []curve
	for _, system := range s.systems() {
		c, ideal := curve{name: system}, curve{name: system + ", ideal", ideal: true}
		one, known := rowOf(rows, system, 1)
		for _, n := range workersOf(rows) {
			if r, ok := rowOf(rows, system, n); ok {
				c.add(n, r.StepMs, r.StepStd)
			}
			if known {
				ideal.add(n, one.StepMs, 0)
			}
		}
		lines = append(lines, c, ideal)
	}
	sharded, nccl := curve{name: "spacy-ray (2021)"}, curve{name: "spacy-ray-nccl (2021)"}
	for _, n := range workersOf(rows) {
		if p, ok := publishedFor(n); ok {
			sharded.add(n, p.Sharded, p.ShardedStd)
			nccl.add(n, p.NCCL, p.NCCLStd)
		}
	}
	return append(lines, sharded, nccl)
}

// speedups compares growths across programs, whose models and machines are
// others, and times within one.
func (s Scaling) speedups(rows []ScalingRow) []curve {
	systems := s.systems()
	var lines []curve
	for i, system := range systems {
		c := curve{name: "spacy-ray-nccl / " + system + ", T(1) made equal"}
		if i > 0 {
			c.name = system + " / " + systems[0]
		}
		for _, n := range workersOf(rows) {
			r, ok := rowOf(rows, system, n)
			if !ok {
				continue
			}
			if i > 0 {
				if first, ok := rowOf(rows, systems[0], n); ok {
					c.add(n, r.StepMs/first.StepMs, 0)
				}
			} else if p, ok := publishedFor(n); ok {
				growth, _ := p.NCCLScaling()
				c.add(n, growth/r.Growth, 0)
			}
		}
		lines = append(lines, c)
	}
	published, ideal := curve{name: "spacy-ray / spacy-ray-nccl (2021)"}, curve{name: "no gain", ideal: true}
	for _, n := range workersOf(rows) {
		ideal.add(n, 1, 0)
		if p, ok := publishedFor(n); ok {
			published.add(n, p.Ratio(), 0)
		}
	}
	return append(lines, published, ideal)
}

func (s Scaling) scalabilities(rows []ScalingRow) []curve {
	var lines []curve
	for _, system := range s.systems() {
		c := curve{name: system}
		for _, n := range workersOf(rows) {
			if r, ok := rowOf(rows, system, n); ok {
				c.add(n, r.Scalability, 0)
			}
		}
		lines = append(lines, c)
	}
	sharded, nccl, ideal := curve{name: "spacy-ray (2021)"}, curve{name: "spacy-ray-nccl (2021)"}, curve{name: "ideal", ideal: true}
	for _, n := range workersOf(rows) {
		ideal.add(n, float64(n), 0)
		if p, ok := publishedFor(n); ok {
			_, a := p.ShardedScaling()
			_, b := p.NCCLScaling()
			sharded.add(n, a, 0)
			nccl.add(n, b, 0)
		}
	}
	return append(lines, sharded, nccl, ideal)
}

// workerTicks marks the numbers of workers that were measured.
func workerTicks(workers []int) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, n := range workers {
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	return ticks
}

// logTicks marks 1, 2 and 5 times the powers of ten.
func logTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, e); v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.4g", v)})
			}
		}
	}
	return ticks
}
