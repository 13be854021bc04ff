package data

import "math"

// point is a position in the unit square, with x to the right and y down.
type point struct{ x, y float64 }

// stroke is one movement of the pen, a polyline.
type stroke []point

// line returns the stroke through the given x, y pairs.
func line(xy ...float64) stroke {
	s := make(stroke, 0, len(xy)/2)
	for i := 0; i+1 < len(xy); i += 2 {
		s = append(s, point{xy[i], xy[i+1]})
	}
	return s
}

// ellipse has its centre and its radii along x and y.
type ellipse struct{ cx, cy, rx, ry float64 }

// arc returns part of the ellipse as a polyline, from one angle to another in degrees; 0
// is right and 90 is down. Its vertices are far apart because each of them trembles,
// which makes the corners visible.
func (e ellipse) arc(from, to float64) stroke {
	const perVertex = 36 // degrees
	n := max(2, int(math.Abs(to-from)/perVertex)+1)
	s := make(stroke, n)
	for i := range s {
		degrees := from + mul(to-from, float64(i)/float64(n-1))
		sin, cos := sincos(mul(degrees, math.Pi/180))
		s[i] = point{e.cx + mul(e.rx, cos), e.cy + mul(e.ry, sin)}
	}
	return s
}

// join returns several strokes as one, drawn without lifting the pen.
func join(parts ...stroke) stroke {
	var s stroke
	for _, p := range parts {
		s = append(s, p...)
	}
	return s
}

// glyphs returns the strokes of the ten digits, one to three each. The forms are
// calibrated (see Generate): smaller ones are harder for every model, and more distinct
// ones help a linear model more than a deep one.
func glyphs() [10][]stroke {
	return [10][]stroke{
		{ellipse{.5, .5, .27, .37}.arc(-90, 270)},
		{line(.5, .12, .5, .88)},
		{join(ellipse{.5, .33, .23, .21}.arc(-175, 35), line(.25, .87, .79, .87))},
		{join(ellipse{.46, .31, .23, .19}.arc(-160, 90), ellipse{.46, .69, .26, .19}.arc(-90, 160))},
		{line(.56, .12, .21, .62, .84, .62), line(.65, .35, .65, .89)},
		{join(line(.77, .12, .32, .12, .3, .44), ellipse{.48, .63, .26, .23}.arc(-110, 145))},
		{join(ellipse{.69, .55, .42, .45}.arc(-100, -180), ellipse{.48, .69, .21, .18}.arc(-180, 180))},
		{line(.21, .14, .79, .14, .46, .88)},
		{ellipse{.5, .31, .19, .19}.arc(90, 450), ellipse{.5, .69, .23, .19}.arc(-90, 270)},
		{join(ellipse{.48, .33, .21, .21}.arc(0, -360), line(.69, .6, .59, .82, .36, .88))},
	}
}
