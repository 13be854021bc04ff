package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Scaling is what a scaling run came to.
type Scaling struct {
	Command string  `json:"command"`
	Date    string  `json:"date"`
	Host    string  `json:"host"`    // name, processors
	Compute string  `json:"compute"` // "real", or "emulate:" and how long a step's takes
	Where   string  `json:"where"`   // where the workers are, and what their links carry
	Batch   int     `json:"batch"`   // rows of one worker in one step
	Params  int     `json:"params"`  // of the model
	Steps   int     `json:"steps"`
	Trials  []Trial `json:"trials"`
}

// systems are the names of the systems that were measured, in Systems' order.
func (s Scaling) systems() []string {
	var names []string
	for _, name := range Systems() {
		if slices.ContainsFunc(s.Trials, func(t Trial) bool { return t.System == name }) {
			names = append(names, name)
		}
	}
	return names
}

// Markdown writes the table: times, growth and scalability beside those that
// were published of other programs, then where the time went.
func (s Scaling) Markdown(w io.Writer) error {
	var b strings.Builder
	mode := "Compute is real."
	if s.Compute != "real" {
		mode = "Compute is emulated (" + s.Compute + "): workers wait instead of computing, and exchange what they would."
	}
	fmt.Fprintf(&b, "%s %s; %s. %s of %s per worker, %s. %s\n\n    %s\n\n", s.Date, s.Host, s.Where, plural(s.Steps, "step"), plural(s.Batch, "row"), plural(s.Params, "parameter"), mode, s.Command)
	rows := ScalingRows(s.Trials)
	s.times(&b, rows)
	for _, system := range s.systems() {
		fmt.Fprintf(&b, "\n%s: where the time of a step goes (ms), and what the rank sends that sends the most.\n\n", system)
		splits(&b, rows, system)
	}
	fmt.Fprintln(&b)
	for _, line := range s.transports() {
		fmt.Fprintf(&b, "- %s", line)
	}
	if s.shares() {
		fmt.Fprintln(&b, "\nBetween ranks that share memory (shm) gradients are not sent: the bytes are what the same calls take over tcp.")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// times writes the first table. Of two systems the ratio is that of the second
// by the first.
func (s Scaling) times(b *strings.Builder, rows []ScalingRow) {
	systems := s.systems()
	head := []string{"workers"}
	for _, name := range systems {
		head = append(head, name+" (s)", "ms/step", "growth", "scalability")
	}
	if len(systems) > 1 {
		head = append(head, systems[1]+"/"+systems[0])
	}
	head = append(head, "spacy-ray (ms/step)", "spacy-ray-nccl (ms/step)", "ratio", "growth nccl", "scalability spacy-ray", "scalability nccl")
	line(b, head)
	line(b, slices.Repeat([]string{"---"}, len(head)))
	for _, n := range workersOf(rows) {
		cells := []string{plural(n, "worker")}
		for _, name := range systems {
			cells = append(cells, ownCells(rows, name, n)...)
		}
		if len(systems) > 1 {
			a, okA := rowOf(rows, systems[0], n)
			c, okC := rowOf(rows, systems[1], n)
			cells = append(cells, cell(okA && okC, "%.2fx", c.StepMs/a.StepMs))
		}
		line(b, append(cells, publishedCells(n)...))
	}
	fmt.Fprintf(b, "\nMean ± sample standard deviation of the trials; growth is T(N)/T(1), ideally 1, and scalability N*T(1)/T(N), ideally N. "+
		"The columns from spacy-ray on are those of the README of spacy_ray_collective (2021), of other machines and another model: 1000 updates, a worker per node.\n")
}

func ownCells(rows []ScalingRow, system string, workers int) []string {
	r, ok := rowOf(rows, system, workers)
	return []string{spread(ok, r.Seconds, r.Std, r.Trials, 2), spread(ok, r.StepMs, r.StepStd, r.Trials, 2),
		cell(ok && !math.IsNaN(r.Growth), "%.2fx", r.Growth), cell(ok && !math.IsNaN(r.Scalability), "%.2f", r.Scalability)}
}

func publishedCells(workers int) []string {
	p, ok := publishedFor(workers)
	growth, nccl := p.NCCLScaling()
	_, sharded := p.ShardedScaling()
	return []string{spread(ok, p.Sharded, p.ShardedStd, 3, 1), spread(ok, p.NCCL, p.NCCLStd, 3, 1), cell(ok, "%.2fx", p.Ratio()),
		cell(ok, "%.2fx", growth), cell(ok, "%.2f", sharded), cell(ok, "%.2f", nccl)}
}

// splits writes the second table, of one system.
func splits(b *strings.Builder, rows []ScalingRow, system string) {
	head := []string{"workers", "step", "compute", "exchange", "optimizer", "evaluation", "idle", "sent (KiB/step)", "sent (KiB)", "on the wire (KiB)", "differ by", "processors busy", ""}
	line(b, head)
	line(b, slices.Repeat([]string{"---"}, len(head)))
	for _, r := range rows {
		if r.System != system {
			continue
		}
		cells := []string{fmt.Sprint(r.Workers), fmt.Sprintf("%.2f", r.StepMs)}
		for _, ms := range r.parts() {
			cells = append(cells, fmt.Sprintf("%.2f", ms))
		}
		note := ""
		if r.CoreBound {
			note = "core-bound"
		}
		line(b, append(cells, fmt.Sprintf("%.1f", float64(r.StepSent)/1024), fmt.Sprintf("%.1f", float64(r.Sent)/1024),
			cell(r.Wire > 0, "%.1f", float64(r.Wire)/1024), cell(r.Wire > 0, "%.1f %%", 100*r.WireOff), cell(r.Busy >= 0, "%.0f %%", 100*r.Busy), note))
	}
	fmt.Fprintf(b, "\ncore-bound: more than %.0f %% of this machine's processors were busy, so they may have decided the time.\n", 100*CoreBound)
}

// shares reports whether any ranks had a transport other than TCP.
func (s Scaling) shares() bool {
	return slices.ContainsFunc(s.Trials, func(t Trial) bool {
		return slices.ContainsFunc(t.Links, func(l Link) bool { return l.Transport != "tcp" })
	})
}

// transports says what carried the messages of each pair of ranks.
func (s Scaling) transports() []string {
	var out []string
	for _, t := range s.Trials {
		kinds := map[string]bool{}
		var odd []string
		for _, l := range t.Links {
			kinds[l.Transport] = true
			odd = append(odd, fmt.Sprintf("%d with %s %s", l.Rank, l.Peers, l.Transport))
		}
		text := fmt.Sprintf("%s, %d workers: ", t.System, t.Workers)
		switch {
		case len(t.Links) == 0:
			continue
		case len(kinds) == 1:
			text += fmt.Sprintf("%s of ranks, each over %s.\n", plural(t.Workers*(t.Workers-1)/2, "pair"), t.Links[0].Transport)
		default:
			text += strings.Join(odd, "; ") + ".\n"
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// WriteJSON writes the run with its trials, the rows that they come to and the
// published ones.
func (s Scaling) WriteJSON(w io.Writer) error {
	rows := ScalingRows(s.Trials)
	out := make([]any, len(rows))
	for i, r := range rows {
		out[i] = r
		if math.IsNaN(r.Growth) { // JSON has no such number
			r.Growth, r.Scalability = 0, 0
			out[i] = r
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Scaling
		Rows      []any       `json:"rows"`
		Published []Published `json:"published"`
	}{s, out, PublishedScaling()})
}

// WriteCSV writes one line for each system and number of workers.
func (s Scaling) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(strings.Split("system,compute,workers,trials,seconds,std_seconds,step_ms,std_step_ms,growth,scalability,"+
		"compute_ms,exchange_ms,optimizer_ms,evaluation_ms,idle_ms,step_sent_bytes,sent_bytes,wire_bytes,wire_off,busy,core_bound", ",")) // Error tells
	for _, r := range ScalingRows(s.Trials) {
		line := []string{r.System, s.Compute, strconv.Itoa(r.Workers), strconv.Itoa(r.Trials)}
		for _, x := range append([]float64{r.Seconds, r.Std, r.StepMs, r.StepStd, r.Growth, r.Scalability}, r.parts()...) {
			line = append(line, strconv.FormatFloat(x, 'g', -1, 64))
		}
		_ = out.Write(append(line, strconv.FormatInt(r.StepSent, 10), strconv.FormatInt(r.Sent, 10), strconv.FormatInt(r.Wire, 10),
			strconv.FormatFloat(r.WireOff, 'g', -1, 64), strconv.FormatFloat(r.Busy, 'g', -1, 64), strconv.FormatBool(r.CoreBound)))
	}
	out.Flush()
	return out.Error()
}

func rowOf(rows []ScalingRow, system string, workers int) (ScalingRow, bool) {
	i := slices.IndexFunc(rows, func(r ScalingRow) bool { return r.System == system && r.Workers == workers })
	if i < 0 {
		return ScalingRow{}, false
	}
	return rows[i], true
}

// workersOf are the numbers of workers in rows, each once, in order.
func workersOf(rows []ScalingRow) []int {
	var all []int
	for _, r := range rows {
		all = append(all, r.Workers)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func line(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// cell is a formatted number, or nothing where there is none.
func cell(ok bool, format string, x float64) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf(format, x)
}

func spread(ok bool, mean, std float64, trials, digits int) string {
	switch {
	case !ok:
		return ""
	case trials < 2:
		return fmt.Sprintf("%.*f", digits, mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", digits, mean, digits, std)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
