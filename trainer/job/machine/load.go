package machine

import (
	"slices"
	"sync"
	"time"
)

// A LoadMeter measures how busy the machine's processors are, from StartLoadMeter to Stop.
type LoadMeter struct {
	stop   chan struct{}
	worker sync.WaitGroup
	times  []ProcessorTime
	counts bool
}

// loadEvery is the time between two readings. The kernel counts hundredths of a second.
const loadEvery = 100 * time.Millisecond

// StartLoadMeter starts to measure. The caller must call Stop.
func StartLoadMeter() *LoadMeter {
	m := &LoadMeter{stop: make(chan struct{})}
	if m.counts = m.read(); m.counts {
		m.worker.Go(m.work)
	}
	return m
}

func (m *LoadMeter) work() {
	ticker := time.NewTicker(loadEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.read()
		case <-m.stop:
			m.read()
			return
		}
	}
}

func (m *LoadMeter) read() bool {
	t, ok := ProcessorTimes()
	if ok {
		m.times = append(m.times, t)
	}
	return ok
}

// Stop ends the measurement. It returns the fraction of the time in which the processors
// were busy, over all and in the busiest quarter of the time, from 0 to 1; negative if it is
// unknown.
func (m *LoadMeter) Stop() (busy, peak float64) {
	close(m.stop)
	m.worker.Wait()
	if !m.counts {
		return -1, -1
	}
	return loadOf(m.times)
}

// loadOf computes the results of Stop from at least one reading.
func loadOf(times []ProcessorTime) (busy, peak float64) {
	busy = times[len(times)-1].BusySince(times[0])
	var each []float64
	for i := range times[1:] {
		if x := times[i+1].BusySince(times[i]); x >= 0 { // negative right after another reading
			each = append(each, x)
		}
	}
	if len(each) == 0 {
		return busy, busy
	}
	slices.Sort(each)
	top := each[len(each)*3/4:]
	for _, x := range top {
		peak += x / float64(len(top))
	}
	return busy, max(busy, peak)
}
