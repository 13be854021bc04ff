package bench

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes of all plots. They are meant for screens: a PNG has 96 dots per inch and is
// 1200 dots wide.
const (
	figureWidth  = 12.5 * vg.Inch
	figureHeight = 7 * vg.Inch
	figureMargin = .3 * vg.Inch
	legendWidth  = 2.4 * vg.Inch // not available to the curves
)

// newFigure returns a plot without curves.
func newFigure(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size, p.Title.Padding = 18, .2*vg.Inch
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size, axis.Label.Padding = 15, .1*vg.Inch
		axis.Tick.Label.Font.Size = 13
		axis.Padding = 0
	}
	p.Legend.TextStyle.Font.Size, p.Legend.Padding = 13, .08*vg.Inch
	p.Legend.Top, p.Legend.Left, p.Legend.ThumbnailWidth = true, true, .5*vg.Inch
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 0xc0}, color.Gray{Y: 0xc0}
	p.Add(grid)
	return p
}

// drawFigure writes a plot, on request with its legend to the right.
func drawFigure(w io.Writer, format string, p *plot.Plot, legend bool) error {
	image, err := draw.NewFormattedCanvas(figureWidth, figureHeight, format)
	if err != nil {
		return fmt.Errorf("bench: drawing: %w", err)
	}
	all := draw.NewCanvas(image, figureWidth, figureHeight)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	inside := draw.Crop(all, figureMargin, -figureMargin, figureMargin, -figureMargin)
	key := p.Legend
	p.Legend = plot.NewLegend()
	if legend {
		p.Draw(draw.Crop(inside, 0, -legendWidth, 0, 0))
		key.Draw(draw.Crop(inside, inside.Max.X-inside.Min.X-legendWidth+.2*vg.Inch, 0, 0, -.7*vg.Inch))
	} else {
		p.Draw(inside)
	}
	if _, err := image.WriteTo(w); err != nil {
		return fmt.Errorf("bench: drawing: %w", err)
	}
	return nil
}

// A look says how to draw the curve of one system, the same in all plots.
type look struct {
	color color.Color
	shape draw.GlyphDrawer
}

// lookOf returns the look of a system. Colour-blind readers can distinguish the
// colours (Okabe and Ito), except for the last two of Systems.
func lookOf(system string) look {
	known := map[string]look{
		"spacy-ray":      {color.RGBA{0xd5, 0x5e, 0x00, 0xff}, draw.BoxGlyph{}},
		"spacy-ray-nccl": {color.RGBA{0x00, 0x9e, 0x73, 0xff}, draw.PyramidGlyph{}},
	}
	if l, ok := known[system]; ok {
		return l
	}
	ours := []look{
		{color.RGBA{0x00, 0x72, 0xb2, 0xff}, draw.CircleGlyph{}},
		{color.RGBA{0xcc, 0x79, 0xa7, 0xff}, draw.TriangleGlyph{}},
		{color.RGBA{0xe6, 0x9f, 0x00, 0xff}, draw.RingGlyph{}},
		{color.RGBA{0x56, 0xb4, 0xe9, 0xff}, draw.SquareGlyph{}},
		{color.RGBA{0xf0, 0xe4, 0x42, 0xff}, draw.CrossGlyph{}},
		{color.RGBA{0x88, 0x88, 0x88, 0xff}, draw.BoxGlyph{}},
		{color.RGBA{0x7a, 0x4a, 0x12, 0xff}, draw.PyramidGlyph{}},
		{color.RGBA{0x00, 0x00, 0x00, 0xff}, draw.PlusGlyph{}}, // a system that Systems does not list
	}
	at := slices.Index(Systems(), system)
	if at < 0 {
		at = len(ours) - 1
	}
	return ours[at]
}

// niceTicks marks about six multiples of 1, 2 or 5 times a power of ten.
func niceTicks(low, high float64) []plot.Tick {
	step := niceStep((high - low) / 6)
	var ticks []plot.Tick
	for k := math.Ceil(low/step - 1e-9); k*step <= high+1e-9*step; k++ {
		ticks = append(ticks, plot.Tick{Value: k * step, Label: tickText(k * step)})
	}
	return ticks
}

// niceStep returns the smallest of 1, 2 and 5 times a power of ten that is at least x.
func niceStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(cmp.Or(x, 1))))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= x*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logTicks marks 1, 2 and 5 times the powers of ten.
func logTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, e); v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: tickText(v)})
			}
		}
	}
	return ticks
}

// tickText formats a number in at most four digits, without trailing zeros.
func tickText(v float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return strconv.FormatFloat(rounded+0, 'f', -1, 64) // no -0
}
