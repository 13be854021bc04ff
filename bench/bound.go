package bench

import (
	"slices"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// bound returns the time of a step that no algorithm can beat, in nanoseconds: it follows from
// the bytes, the links, the time of computing, and the order in which gradients become final.
func (f Fabric) bound(w Workload, s system, n int) float64 {
	alone := float64(w.Compute)
	switch {
	case s.served():
		return f.boundServers(w, s, n)
	case n < 2:
		return alone
	case s.strategy == "allreduce":
		return f.boundAllReduce(w, n)
	case s.strategy == peersSystem:
		// A worker sends the gradients of the shares of all others, and does not wait.
		return max(alone, f.wire(4*w.Params.Grads.Len())*float64(n-1)/float64(n))
	}
	return alone + float64(w.Params.Grads.Len())*w.summed(n)*f.wire(1)/float64(w.InnerSteps)
}

// boundAllReduce is bound for allreduce. When the gradient of a parameter becomes final, a link
// must still carry it and all gradients that become final later. The parameter for which that
// ends last gives the bound, or the compute time if that is longer.
func (f Fabric) boundAllReduce(w Workload, n int) float64 {
	least := float64(w.Compute)
	for _, q := range w.Params.List {
		left := float64(q.Offset+q.Values.Len()) * w.summed(n)
		least = max(least, w.final(q.Offset)+left*f.wire(1))
	}
	return least
}

// summed is the number of bytes that every node must send for an element, and receive: 2(n-1)/n
// of its size if nodes can sum it (Patarasuk and Yuan, 2009), or else what the others have.
func (w Workload) summed(n int) float64 {
	t, sums := w.compression.SumType()
	if sums {
		return float64(t.Size()) * 2 * float64(n-1) / float64(n)
	}
	whole := w.Params.Grads.Len()
	return float64(w.compression.Packed(w.Params, 4*whole)) / float64(max(whole, 1)) * float64(n-1)
}

// boundServers is bound for parameter servers. All that is pushed to the busiest server passes
// its link, and then all that is pulled from it. If workers wait for each other, pulls begin
// after the last push, and the first push when the first bucket is final. Smaller buckets
// could begin sooner, so this bound is that of the buckets in use.
func (f Fabric) boundServers(w Workload, s system, n int) float64 {
	v := f.serving(w, s, n)
	all, largest := w.Params.Grads.Len(), slices.Max(v.held())
	clients, given := n, all
	if v.first == 0 { // a worker keeps its own share
		clients, given = n-1, all-largest
	}
	wire := f.wire(4 * max(clients*largest, given))
	if !s.lockstep() {
		return max(float64(w.Compute), wire)
	}
	return max(float64(w.Compute), w.final(all-v.lens[0])+wire) + wire
}

// rows returns the rows of s, with the bounds that are known.
func (s Scaling) rows() []ScalingRow {
	rows := ScalingRows(s.Trials)
	rate, err := launch.ParseRate(s.Link)
	if s.Link == "" || err != nil {
		return rows
	}
	b := cpu.New(cpu.Options{})
	defer b.Close()
	w, err := s.workload(b)
	if err != nil { // its compute is not emulated, so it is unknown when gradients are final
		return rows
	}
	f := Fabric{Rate: float64(rate)}
	for i := range rows {
		rows[i].Bound = f.bound(w, systemOf(rows[i].System), rows[i].Workers) / 1e6
	}
	return rows
}
