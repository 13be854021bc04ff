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

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// A Scaling is the result of a scaling run.
type Scaling struct {
	Command string  `json:"command"`
	Date    string  `json:"date"`
	Host    string  `json:"host"`    // name, processors
	Compute string  `json:"compute"` // "real", or "emulate:" and the time per step
	Where   string  `json:"where"`   // where the workers run, and the rate of their links
	Batch   int     `json:"batch"`   // rows of one worker per step
	Params  int     `json:"params"`  // of the model
	Steps   int     `json:"steps"`
	Trials  []Trial `json:"trials"`

	// For simulations: the lengths of the parameters, the rate of links in namespaces, or "",
	// how gradients are compressed, the processors of the machine, and the inner steps of local-sgd and diloco.
	Lens       []int  `json:"param_lengths"`
	Link       string `json:"link,omitempty"`
	Compress   string `json:"compress,omitempty"` // as of job.Gradients; "": none
	Processors int    `json:"processors"`
	InnerSteps int    `json:"inner_steps"`

	// Published adds the figures of PublishedScaling to tables and plots. JSON
	// always has them.
	Published bool `json:"-"`
}

// systems returns the names of the measured systems, in the order of the trials.
func (s Scaling) systems() []string {
	var names []string
	for _, t := range s.Trials {
		if !slices.Contains(names, t.System) {
			names = append(names, t.System)
		}
	}
	return names
}

// Text writes the tables for a terminal, in aligned columns: times and their ratios,
// where the time goes, and what is sent. With Published it adds the published
// figures, in a table of their own.
func (s Scaling) Text(w io.Writer) error {
	return s.write(w, (*grid).text, func(b *strings.Builder, name, text string) { fmt.Fprintf(b, "%-9s %s\n", name+":", text) })
}

// Markdown is Text in Markdown.
func (s Scaling) Markdown(w io.Writer) error {
	return s.write(w, (*grid).markdown, func(b *strings.Builder, name, text string) { fmt.Fprintf(b, "- %s: %s\n", name, text) })
}

func (s Scaling) write(w io.Writer, table func(*grid, *strings.Builder), fact func(b *strings.Builder, name, text string)) error {
	var b strings.Builder
	fact(&b, "date", s.Date)
	fact(&b, "host", s.Host)
	fact(&b, "where", s.Where)
	fact(&b, "training", fmt.Sprintf("%s of %s per worker, %s", plural(s.Steps, "step"), plural(s.Batch, "row"), plural(s.Params, "parameter")))
	fact(&b, "compute", s.computeText())
	fact(&b, "command", s.Command)
	rows := s.rows()
	show := func(about string, g *grid) {
		fmt.Fprintf(&b, "\n%s\n\n", about)
		table(g, &b)
	}
	about := ratios
	if slices.ContainsFunc(rows, func(r ScalingRow) bool { return r.Bound > 0 }) {
		about += bounds
	}
	show("Time of all steps and of one, mean ± sample standard deviation of the trials.\n"+about, timesOf(rows))
	show("Where the time of a step goes, in ms.", splitsOf(rows))
	show("What the busiest rank sends, in all and per step, and how busy the processors\nof this machine were: on average, and in the busiest quarter of the time (peak).", trafficOf(rows))
	if slices.ContainsFunc(rows, func(r ScalingRow) bool { return r.CoreBound }) {
		fmt.Fprintf(&b, "\ncore-bound: at the peak, more than %.0f %% of the processors were busy, so they may have\ndecided the time.\n", 100*CoreBound)
	}
	if s.Published {
		show("Published in the README of spacy_ray_collective (2021), of other machines and\nanother model: 1000 updates, a worker per machine. "+
			"Only the ratios compare.", publishedTable())
	}
	fmt.Fprintln(&b)
	for _, line := range s.transports() {
		fmt.Fprintf(&b, "- %s", line)
	}
	if s.shares() {
		fmt.Fprintln(&b, "\nRanks that share memory (shm) send no gradients: the bytes are what the same calls\nsend over tcp.")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ratios explains the last columns of a table of times.
const ratios = "growth T(N)/T(1) and speedup T(1)/T(N), ideally 1; scalability N*T(1)/T(N),\nideally N."

// bounds explains the column that follows if links and compute are known.
const bounds = " bound: the ms/step that bytes, links, compute and the\norder in which gradients become final allow."

func (s Scaling) computeText() string {
	if s.Compute == "real" {
		return s.Compute
	}
	return s.Compute + " (workers wait instead of computing, and exchange the same bytes)"
}

// timesOf returns the table of times.
func timesOf(rows []ScalingRow) *grid {
	g := &grid{head: []string{"system", "workers", "seconds", "ms/step", "growth", "speedup", "scalability"}}
	bounded := slices.ContainsFunc(rows, func(r ScalingRow) bool { return r.Bound > 0 })
	if bounded {
		g.head = append(g.head, "bound", "ms/step / bound")
	}
	for _, r := range rows {
		known := !math.IsNaN(r.Growth)
		cells := []string{r.System, fmt.Sprint(r.Workers), spread(r.Seconds, r.Std, r.Trials, 2), spread(r.StepMs, r.StepStd, r.Trials, 2),
			cell(known, "%.2f", r.Growth), cell(known, "%.2f", r.Speedup()), cell(known, "%.2f", r.Scalability)}
		if bounded {
			cells = append(cells, cell(r.Bound > 0, "%.2f", r.Bound), cell(r.Bound > 0, "%.2f", r.StepMs/r.Bound))
		}
		g.add(cells...)
	}
	return g
}

// publishedTable returns the table of published times.
func publishedTable() *grid {
	g := &grid{head: []string{"system", "workers", "seconds", "ms/step", "growth", "speedup", "scalability"}}
	for _, system := range publishedSystems() {
		for _, p := range PublishedScaling() {
			ms, std, growth, scalability := system.of(p)
			g.add(system.name, fmt.Sprint(p.Workers), spread(ms, std, 3, 1), spread(ms, std, 3, 1),
				fmt.Sprintf("%.2f", growth), fmt.Sprintf("%.2f", 1/growth), fmt.Sprintf("%.2f", scalability))
		}
	}
	return g
}

// splitsOf returns the table of where the time goes.
func splitsOf(rows []ScalingRow) *grid {
	g := &grid{head: []string{"system", "workers", "step", "compute", "exchange", "optimizer", "evaluation", "idle"}}
	for _, r := range rows {
		cells := []string{r.System, fmt.Sprint(r.Workers), fmt.Sprintf("%.2f", r.StepMs)}
		for _, ms := range r.parts() {
			cells = append(cells, fmt.Sprintf("%.2f", ms))
		}
		g.add(cells...)
	}
	return g
}

// trafficOf returns the table of what is sent.
func trafficOf(rows []ScalingRow) *grid {
	g := &grid{head: []string{"system", "workers", "KiB/step", "KiB sent", "KiB on wire", "differ by", "CPU busy", "peak"}}
	used := slices.ContainsFunc(rows, func(r ScalingRow) bool { return r.Used > 0 })
	if used {
		g.head = append(g.head, "gradients used")
	}
	g.head = append(g.head, "")
	for _, r := range rows {
		note := ""
		if r.CoreBound {
			note = "core-bound"
		}
		cells := []string{r.System, fmt.Sprint(r.Workers), fmt.Sprintf("%.1f", float64(r.StepSent)/1024), fmt.Sprintf("%.1f", float64(r.Sent)/1024),
			cell(r.Wire > 0, "%.1f", float64(r.Wire)/1024), cell(r.Wire > 0, "%.1f %%", 100*r.WireOff), cell(r.Busy >= 0, "%.0f %%", 100*r.Busy), cell(r.Busy >= 0 && r.Peak >= r.Busy, "%.0f %%", 100*r.Peak)}
		if used {
			cells = append(cells, cell(r.Used > 0, "%.1f %%", r.Used))
		}
		g.add(append(cells, note)...)
	}
	return g
}

// shares reports whether any ranks had a transport other than TCP.
func (s Scaling) shares() bool {
	return slices.ContainsFunc(s.Trials, func(t Trial) bool {
		return slices.ContainsFunc(t.Links, func(l Link) bool { return l.Transport != cluster.TransportTCP })
	})
}

// transports returns lines about what carried the messages of each pair of ranks.
func (s Scaling) transports() []string {
	var out []string
	for _, t := range s.Trials {
		kinds, ranks := map[string]bool{}, t.Workers+t.Servers
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
			text += fmt.Sprintf("%s of ranks, each over %s.\n", plural(ranks*(ranks-1)/2, "pair"), t.Links[0].Transport)
		default:
			text += strings.Join(odd, "; ") + ".\n"
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// WriteJSON writes the run with its trials, their rows and the published ones.
func (s Scaling) WriteJSON(w io.Writer) error {
	rows := s.rows()
	out := make([]any, len(rows))
	for i, r := range rows {
		out[i] = r
		if math.IsNaN(r.Growth) { // JSON has no NaN
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
	_ = out.Write(strings.Split("system,compute,workers,trials,seconds,std_seconds,step_ms,std_step_ms,bound_ms,growth,scalability,"+
		"compute_ms,exchange_ms,optimizer_ms,evaluation_ms,idle_ms,step_sent_bytes,sent_bytes,wire_bytes,wire_off,busy,busy_peak,gradients_used_percent,core_bound", ",")) // Error tells
	for _, r := range s.rows() {
		line := []string{r.System, s.Compute, strconv.Itoa(r.Workers), strconv.Itoa(r.Trials)}
		for _, x := range append([]float64{r.Seconds, r.Std, r.StepMs, r.StepStd, r.Bound, r.Growth, r.Scalability}, r.parts()...) {
			line = append(line, strconv.FormatFloat(x, 'g', -1, 64))
		}
		_ = out.Write(append(line, strconv.FormatInt(r.StepSent, 10), strconv.FormatInt(r.Sent, 10), strconv.FormatInt(r.Wire, 10),
			strconv.FormatFloat(r.WireOff, 'g', -1, 64), strconv.FormatFloat(r.Busy, 'g', -1, 64), strconv.FormatFloat(r.Peak, 'g', -1, 64), strconv.FormatFloat(r.Used, 'g', -1, 64), strconv.FormatBool(r.CoreBound)))
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

// workersOf returns the numbers of workers in rows, sorted and without duplicates.
func workersOf(rows []ScalingRow) []int {
	var all []int
	for _, r := range rows {
		all = append(all, r.Workers)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// cell returns a formatted number, or "" if there is none.
func cell(ok bool, format string, x float64) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf(format, x)
}

func spread(mean, std float64, trials, digits int) string {
	if trials < 2 {
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
