package bench

import (
	"math"
	"time"
)

// mostFitted is the largest number of workers whose measured times a fit uses. Those of more
// workers show how good its predictions are.
const mostFitted = 4

// mostOther is the load of a machine with one worker that only waits, above which other
// programs use the processors too.
const mostOther = .25

// fitted reports whether a fit uses a row.
func fitted(r ScalingRow) bool {
	return r.Workers > 1 && r.Workers <= mostFitted && r.StepMs > 0 && systemOf(r.System).lockstep()
}

// fit returns f with the processor times of messages and bytes, and the latency, that predict
// measured rows best, by the sum of squares of relative errors. It uses rows of 2 to mostFitted
// workers, and needs at least one.
//
// The load of the processors determines the processor times, and then the times of steps
// determine the latency. If the load is unknown, the fit attributes all overhead to processor
// time, which grows with the number of nodes that share a core.
func (f Fabric) fit(w Workload, rows []ScalingRow) Fabric {
	steps := func(g Fabric) (off float64) {
		for _, r := range rows {
			if fitted(r) {
				e := g.predict(w, r.System, r.Workers).step/(1e6*r.StepMs) - 1
				off += e * e
			}
		}
		return off
	}
	used := f.processorTimes(rows)
	if len(used) == 0 {
		return f.fitProcessors(steps)
	}
	f = f.fitProcessors(func(g Fabric) (off float64) {
		for i := range rows { // in this order, so that equal measurements have equal fits
			took, known := used[i]
			if !known {
				continue
			}
			g.spent = new(float64)
			step := g.predict(w, rows[i].System, rows[i].Workers).step
			e := (*g.spent - took) / (step * float64(f.Cores))
			off += e * e
		}
		return off
	})
	return f.fitLatency(steps)
}

// processorTimes returns the nanoseconds that all processors spent on the messages of a step,
// by the index of the row: their busy time minus that of as many workers that exchange nothing.
// It is empty if that is unknown.
func (f Fabric) processorTimes(rows []ScalingRow) map[int]float64 {
	busy := func(r ScalingRow) float64 { return r.Busy * float64(f.Cores) * 1e6 * r.StepMs }
	used := map[int]float64{}
	for i, r := range rows {
		if !fitted(r) || systemOf(r.System).strategy != "allreduce" { // others exchange something with one worker, too, or not in every step
			continue
		}
		alone, ok := rowOf(rows, r.System, 1)
		if f.Cores == 0 || !ok || alone.Busy <= 0 || alone.Busy > mostOther || r.Busy <= 0 {
			return nil
		}
		used[i] = max(0, busy(r)-float64(r.Workers)*busy(alone))
	}
	return used
}

// fitProcessors returns f with the processor times for which off is least.
func (f Fabric) fitProcessors(off func(Fabric) float64) Fabric {
	f.Message, f.PerByte = 0, 0
	best, least := f, off(f)
	try := func(message, perByte float64) bool {
		g := f
		g.Message, g.PerByte = time.Duration(message), perByte
		if message < 0 || perByte < 0 {
			return false
		}
		e := off(g)
		if e >= least {
			return false
		}
		best, least = g, e
		return true
	}
	// The algorithm depends on the times, so the error has steps: begin with the best of a grid.
	for m := range 16 {
		for b := range 12 {
			try(1e3*math.Exp2(float64(m)/1.5), math.Exp2(float64(b)-8))
		}
	}
	for stride := .25; stride > 1e-4; stride /= 2 {
		for moved := true; moved; {
			message, perByte := float64(best.Message), best.PerByte
			m, b := stride*max(message, 1e3), stride*max(perByte, .01)
			moved = try(message+m, perByte) || try(message-m, perByte) || try(message, perByte+b) || try(message, perByte-b) ||
				try(message+m, perByte-b) || try(message-m, perByte+b)
		}
	}
	return best
}

// fitLatency returns f with the latency for which off is least.
func (f Fabric) fitLatency(off func(Fabric) float64) Fabric {
	f.Latency = 0
	best, least := f, off(f)
	try := func(latency float64) bool {
		g := f
		g.Latency = time.Duration(latency)
		e := off(g)
		if latency < 0 || e >= least {
			return false
		}
		best, least = g, e
		return true
	}
	for i := range 24 {
		try(1e3 * math.Exp2(float64(i)/1.5))
	}
	for stride := .25; stride > 1e-3; stride /= 2 {
		for moved := true; moved; {
			now := float64(best.Latency)
			moved = try(now+stride*max(now, 1e3)) || try(now-stride*max(now, 1e3))
		}
	}
	return best
}
