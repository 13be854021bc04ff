package machine

import "fmt"

// A ProcessorTime is how long the processors have worked and idled, in an unknown
// unit.
type ProcessorTime struct{ busy, all uint64 }

// BusySince is the share of time since an earlier one in which they were not
// idle; negative if no time has passed.
func (t ProcessorTime) BusySince(before ProcessorTime) float64 {
	if t.all <= before.all {
		return -1
	}
	return float64(t.busy-before.busy) / float64(t.all-before.all)
}

// parseProcessorTime reads the first line of /proc/stat. What a hypervisor gave
// to others counts as busy: it was not to be had.
func parseProcessorTime(stat string) (ProcessorTime, bool) {
	var user, nice, system, idle, wait, irq, soft, steal uint64
	if n, _ := fmt.Sscanf(stat, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &soft, &steal); n < 8 {
		return ProcessorTime{}, false
	}
	busy := user + nice + system + irq + soft + steal
	return ProcessorTime{busy: busy, all: busy + idle + wait}, true
}
