package bench

import (
	"math"
	"time"
)

// mostFitted is the largest number of workers whose measured times a fit uses. Those of more
// workers show how good its predictions are.
const mostFitted = 4

// fitted reports whether a fit uses a row.
func fitted(r ScalingRow) bool {
	return r.Workers > 1 && r.Workers <= mostFitted && r.StepMs > 0 && systemOf(r.System).lockstep()
}

// fit returns f with the processor times of messages and bytes that predict the steps of
// measured rows best, by the sum of squares of relative errors. It uses rows of 2 to
// mostFitted workers, and needs at least one.
func (f Fabric) fit(w Workload, rows []ScalingRow) Fabric {
	off := func(message, perByte float64) float64 {
		g, sum := f, 0.
		g.Message, g.PerByte = time.Duration(message), perByte
		for _, r := range rows {
			if fitted(r) {
				e := g.predict(w, r.System, r.Workers).step/(1e6*r.StepMs) - 1
				sum += e * e
			}
		}
		return sum
	}
	// The algorithm depends on the times, so the error has steps: begin with the best of a grid.
	var message, perByte float64
	least := off(0, 0)
	try := func(m, b float64) bool {
		if m < 0 || b < 0 {
			return false
		}
		e := off(m, b)
		if e >= least {
			return false
		}
		message, perByte, least = m, b, e
		return true
	}
	for m := range 16 {
		for b := range 12 {
			try(1e3*math.Exp2(float64(m)/1.5), math.Exp2(float64(b)-8))
		}
	}
	for stride := .25; stride > 1e-4; stride /= 2 {
		for moved := true; moved; {
			m, b := stride*max(message, 1e3), stride*max(perByte, .01)
			moved = try(message+m, perByte) || try(message-m, perByte) || try(message, perByte+b) || try(message, perByte-b) ||
				try(message+m, perByte-b) || try(message-m, perByte+b)
		}
	}
	f.Message, f.PerByte = time.Duration(message), perByte
	return f
}
