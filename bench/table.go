package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
)

// A Table writes rows as nccl-tests does. Lines that are not rows start with #. A row
// has nccl-tests' 13 columns and two more: the p99 and the iterations of Row.Main.
//
// The zero value is an empty table. Call Header first and Footer last.
type Table struct {
	timing int // timings written so far
	busbw  float64
	wrong  int64
	looked bool   // results were checked
	plans  []byte // a line for each row that has a plan
}

// Header writes the settings, one line for each rank, and the names of the columns.
func (t *Table) Header(w io.Writer, s Spec, transport string, ranks []string) error {
	begin, end := 0, 0
	if n := len(s.Sizes); n > 0 {
		begin, end = s.Sizes[0], s.Sizes[n-1]
	}
	factor := 1
	if len(s.Sizes) > 1 && begin > 0 {
		factor = s.Sizes[1] / s.Sizes[0]
	}
	iterations := "adaptive"
	switch {
	case s.Iterations > 0:
		iterations = fmt.Sprint(s.Iterations)
	case s.Time > 0:
		iterations = fmt.Sprintf("as many as take %v", s.Time)
	}
	check := 0
	if s.Check {
		check = 1
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# ringtrain bench collective %s transport %s ranks %d\n", s.Op, transport, len(ranks))
	fmt.Fprintf(&b, "# minBytes %d maxBytes %d step: %d(factor) warmup iters: %d iters: %s validation: %d\n#\n", begin, end, factor, s.Warmup, iterations, check)
	b.WriteString("# Using ranks\n")
	for i, name := range ranks {
		fmt.Fprintf(&b, "#  Rank %2d on %s\n", i, name)
	}
	b.WriteString("#\n")
	fmt.Fprintf(&b, "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place\n", "", "", "", "", "")
	fmt.Fprintf(&b, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s  %7s  %5s\n", "size", "count", "type", "redop", "root",
		"time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", "p99", "iters")
	fmt.Fprintf(&b, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %5s  %7s  %6s  %6s  %5s  %7s\n", "(B)", "(elements)", "", "", "",
		"(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)")
	_, err := io.WriteString(w, b.String())
	return err
}

// Row writes one row.
func (t *Table) Row(w io.Writer, r Row) error {
	t.wrong += r.Wrong()
	redop := "none"
	if r.Reduction != 0 {
		redop = reductionName(r.Reduction)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%12d  %12d  %8s  %6s  %6d", r.Size, r.Count, typeName(r.DType), redop, r.Root)
	for _, timing := range []*Timing{r.Out, r.In} {
		if timing == nil {
			fmt.Fprintf(&b, "  %7s  %6s  %6s  %5s", "N/A", "N/A", "N/A", "N/A")
			continue
		}
		t.timing++
		t.busbw += r.BusBW(timing)
		t.looked = t.looked || timing.Wrong >= 0
		wrong := "N/A"
		if timing.Wrong >= 0 {
			wrong = fmt.Sprintf("%5g", float64(timing.Wrong))
		}
		fmt.Fprintf(&b, "  %7s  %6.2f  %6.2f  %5s", micros(timing.Median), r.AlgBW(timing), r.BusBW(timing), wrong)
	}
	main := r.Main()
	if p := r.Plan; p.Method != 0 {
		t.plans = fmt.Appendf(t.plans, "# %10d  %-16s  %8d  %7d  %9s  %9s  %s\n", r.Size, p.Method, p.Segment*r.DType.Size(), p.Streams,
			strings.TrimSpace(micros(float64(p.Predicted.Nanoseconds())/1e3)), strings.TrimSpace(micros(main.Median)), p.Why)
	}
	fmt.Fprintf(&b, "  %7s  %5d\n", micros(main.P99), main.Iterations)
	_, err := io.WriteString(w, b.String())
	return err
}

// Footer writes the plans, the verdict on all results, and the mean of all busbw
// figures in the table.
func (t *Table) Footer(w io.Writer) error {
	verdict := "OK"
	switch {
	case !t.looked:
		verdict = "NOT CHECKED"
	case t.wrong > 0:
		verdict = "FAILED"
	}
	plans := ""
	if len(t.plans) > 0 {
		plans = fmt.Sprintf("#\n# %10s  %-16s  %8s  %7s  %9s  %9s  why\n", "size (B)", "algorithm", "segment", "streams", "predicted", "measured") + string(t.plans) + "#\n"
	}
	_, err := fmt.Fprintf(w, plans+"# Out of bounds values : %d %s\n# Avg bus bandwidth    : %.6g\n#\n", t.wrong, verdict, t.busbw/float64(max(t.timing, 1)))
	return err
}

// micros formats a time in seven columns, with fewer decimals for longer times.
func micros(us float64) string {
	switch {
	case us >= 10_000:
		return fmt.Sprintf("%7.0f", us)
	case us >= 100:
		return fmt.Sprintf("%7.1f", us)
	}
	return fmt.Sprintf("%7.2f", us)
}

// typeNames has nccl-tests' names of types, where they are not Go's.
var typeNames = map[collective.DType]string{
	collective.Float32: "float", collective.Float64: "double", collective.Float16: "half",
}

func typeName(t collective.DType) string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return t.String()
}

// ParseType reads the name of an element type, nccl-tests' or Go's.
func ParseType(name string) (collective.DType, error) {
	for t := collective.Float32; t <= collective.Uint8; t++ {
		if name == t.String() || name == typeName(t) {
			return t, nil
		}
	}
	return 0, fmt.Errorf("unknown type %q; use float, double, half, bfloat16, int32, int64 or uint8", name)
}

// reductionName returns nccl-tests' name of a reduction.
func reductionName(o collective.Op) string {
	if o == collective.Mean {
		return "avg"
	}
	return o.String()
}

// ParseReduction reads the name of a reduction, nccl-tests' or this library's.
func ParseReduction(name string) (collective.Op, error) {
	for o := collective.Sum; o <= collective.Prod; o++ {
		if name == o.String() || name == reductionName(o) {
			return o, nil
		}
	}
	return 0, fmt.Errorf("unknown reduction %q; use sum, prod, min, max or avg", name)
}
