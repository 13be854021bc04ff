package machine

import "fmt"

// A ProcessorTime is how long the processors have been busy and idle, in ticks of the
// kernel.
type ProcessorTime struct{ busy, all uint64 }

// BusySince returns the fraction of the time since before in which the processors were
// busy, from 0 to 1; negative if no time has passed. Linux may count times back, of waiting
// for disks among others, see proc(5).
func (t ProcessorTime) BusySince(before ProcessorTime) float64 {
	if t.all <= before.all {
		return -1
	}
	busy := float64(t.busy) - float64(before.busy)
	return min(max(busy/float64(t.all-before.all), 0), 1)
}

// parseProcessorTime parses the first line of /proc/stat. Time that a hypervisor gave to
// other guests counts as busy, because this machine could not use it.
func parseProcessorTime(stat string) (ProcessorTime, bool) {
	var user, nice, system, idle, wait, irq, soft, steal uint64
	if n, _ := fmt.Sscanf(stat, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &soft, &steal); n < 8 {
		return ProcessorTime{}, false
	}
	busy := user + nice + system + irq + soft + steal
	return ProcessorTime{busy: busy, all: busy + idle + wait}, true
}
