package bench

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// ScalingPlots returns the names of the plots of a scaling run. Each is over the
// number of workers N:
//
//   - runtime: the time of a step, ideally that with one worker.
//   - speedup: T(1)/T(N), ideally 1.
//   - scalability: N*T(1)/T(N), ideally N.
func ScalingPlots() []string { return []string{"runtime", "speedup", "scalability"} }

// Plot draws one of ScalingPlots in a format of PlotFormat, 1200 dots wide. With
// Published it adds the published figures for the same numbers of workers.
func (s Scaling) Plot(w io.Writer, format, name string) error {
	rows := ScalingRows(s.Trials)
	if len(rows) == 0 {
		return errors.New("bench: there are no measurements to draw")
	}
	var p *plot.Plot
	var measure func(ms, std float64, row ScalingRow) (y, off float64)
	var ideal func(one float64, n int) float64
	switch name {
	case "runtime":
		p = newFigure("Time of a step", "workers", "ms per step")
		measure = func(ms, std float64, _ ScalingRow) (y, off float64) { return ms, std }
		ideal = func(one float64, _ int) float64 { return one }
	case "speedup":
		p = newFigure("Speedup", "workers", "T(1)/T(N)")
		measure = func(_, _ float64, r ScalingRow) (y, off float64) { return r.Speedup(), 0 }
		ideal = func(float64, int) float64 { return 1 }
	case "scalability":
		p = newFigure("Scalability", "workers", "N*T(1)/T(N)")
		measure = func(_, _ float64, r ScalingRow) (y, off float64) { return r.Scalability, 0 }
		ideal = func(_ float64, n int) float64 { return float64(n) }
	default:
		return fmt.Errorf("bench: plot %q is not known", name)
	}
	p.Title.Text += s.computeTitle()
	curves := s.curves(rows, measure, ideal)
	if len(curves) == 0 {
		return errors.New("bench: there are no measurements to draw")
	}
	for _, c := range curves {
		if err := c.draw(p); err != nil {
			return fmt.Errorf("bench: drawing: %w", err)
		}
	}
	workers := workersOf(rows)
	p.X.Tick.Marker, p.X.Scale = workerTicks(workers), plot.LogScale{}
	p.X.Min, p.X.Max = float64(workers[0])/1.15, float64(workers[len(workers)-1])*1.15
	frame(p, name, workers)
	return drawFigure(w, format, p, true)
}

func (s Scaling) computeTitle() string {
	if took, emulated := strings.CutPrefix(s.Compute, "emulate:"); emulated {
		return " (compute emulated, " + took + " per step)"
	}
	return ""
}

// frame chooses the axes of a plot that has its curves.
func frame(p *plot.Plot, name string, workers []int) {
	const most = 6 // ratio of the values above which small ones are hard to see on a linear axis
	switch {
	case name == "scalability":
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, workerTicks(workers)
		p.Y.Min, p.Y.Max = math.Min(p.Y.Min, p.X.Min)/1.05, math.Max(p.Y.Max, p.X.Max)*1.05
	case name == "runtime" && p.Y.Max > most*p.Y.Min:
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
		p.Y.Min, p.Y.Max = p.Y.Min/1.2, p.Y.Max*1.2
	default:
		p.Y.Tick.Marker = plot.TickerFunc(niceTicks)
		p.Y.Min, p.Y.Max = 0, p.Y.Max*1.08
	}
}

// A curve is one line of a plot.
type curve struct {
	name   string // in the legend
	system string // "": the ideal curve, dashed and without points
	points
}

// points are points of a plot with their error bars.
type points struct {
	plotter.XYs
	plotter.YErrors
}

func (c *curve) add(workers int, y, std float64) {
	if !(y > 0) || math.IsInf(y, 0) { // not measured, or shorter than the clock's resolution
		return
	}
	c.XYs = append(c.XYs, plotter.XY{X: float64(workers), Y: y})
	std = min(std, y/2) // a logarithmic axis has no 0
	c.YErrors = append(c.YErrors, struct{ Low, High float64 }{std, std})
}

func (c *curve) draw(p *plot.Plot) error {
	line, dots, err := plotter.NewLinePoints(c.XYs)
	if err != nil {
		return err
	}
	if c.system == "" {
		line.Color, line.Width = color.Gray{Y: 0x60}, vg.Points(1.5)
		line.Dashes = []vg.Length{vg.Points(6), vg.Points(4)}
		p.Add(line)
		p.Legend.Add(c.name, line)
		return nil
	}
	bars, err := plotter.NewYErrorBars(c.points)
	if err != nil {
		return err
	}
	look := lookOf(c.system)
	line.Color, dots.Color, bars.Color, dots.Shape = look.color, look.color, look.color, look.shape
	line.Width, bars.Width, dots.Radius = vg.Points(2), vg.Points(1.5), vg.Points(4.5)
	p.Add(line, bars, dots)
	p.Legend.Add(c.name, line, dots)
	return nil
}

// curves returns the curves of the measured systems, with Published those of the
// published ones, and the ideal for the first system.
func (s Scaling) curves(rows []ScalingRow, measure func(ms, std float64, r ScalingRow) (y, off float64), ideal func(one float64, n int) float64) []curve {
	var all []curve
	best := curve{name: "ideal"}
	for _, system := range s.systems() {
		c := curve{name: system, system: system}
		one, _ := rowOf(rows, system, 1)
		for _, n := range workersOf(rows) {
			if r, ok := rowOf(rows, system, n); ok {
				y, off := measure(r.StepMs, r.StepStd, r)
				c.add(n, y, off)
			}
			if len(all) == 0 {
				best.add(n, ideal(one.StepMs, n), 0)
			}
		}
		all = append(all, c)
	}
	if s.Published {
		for _, system := range publishedSystems() {
			c := curve{name: system.name + " (2021)", system: system.name}
			for _, n := range workersOf(rows) {
				if p, ok := publishedFor(n); ok {
					ms, std, growth, scalability := system.of(p)
					y, off := measure(ms, std, ScalingRow{Growth: growth, Scalability: scalability})
					c.add(n, y, off)
				}
			}
			all = append(all, c)
		}
	}
	return slices.DeleteFunc(append(all, best), func(c curve) bool { return len(c.XYs) == 0 })
}

// workerTicks marks the measured numbers of workers.
func workerTicks(workers []int) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, n := range workers {
		ticks = append(ticks, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	return ticks
}
