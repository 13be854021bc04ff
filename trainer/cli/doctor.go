package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
	"github.com/ringtrain/ringtrain/trainer/job/build"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// A diagnosis is the result of "doctor".
type diagnosis struct {
	Build      build.Build     `json:"build"`
	Machine    machine.Machine `json:"machine"`
	Products   products        `json:"matrix_products"`
	Interfaces []carrier       `json:"interfaces"`

	// Choices are those of ranks that share memory, as cached.
	Choices []calibration.Report `json:"shared_memory"`

	GPU    cuda.Report   `json:"gpu"`
	Checks []query.Check `json:"checks"`
}

// products are the matrix products on this machine's processors.
type products struct {
	Name         string `json:"name"`
	Instructions string `json:"instructions,omitempty"` // "" for plain Go; OpenBLAS's name has them
}

// multiplier returns the matrix products that a run would use, and a check that fails if the
// user asks for others that cannot be loaded.
func multiplier(ctx context.Context) (products, []query.Check) {
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	p := products{Name: backend.BLAS()}
	if ours := sgemm.New(); p.Name == ours.String() {
		p.Instructions = ours.Instructions()
	}
	if err := backend.Sync(ctx); err != nil {
		return p, []query.Check{{Name: "OpenBLAS", Detail: err.Error(), Do: "training cannot start until this is fixed"}}
	}
	return p, nil
}

// A carrier is a network interface that is up.
type carrier struct {
	Name  string   `json:"name"`
	MTU   int      `json:"mtu"`
	Addrs []string `json:"addrs"`
}

func doctorCommand(a *app) *cobra.Command {
	listen, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "doctor [HOST:PORT ...] [flags]",
		Short: "Check this machine and the network between machines",
		Long: `Show what this machine has: cores, memory, instructions, interfaces, versions, GPUs and
CUDA libraries, and how to get those that are missing. Show how workers that share memory
move data here, if a job has measured it.

With HOST:PORT, also check TCP and UDP in both directions between this machine and one
where ringtrain doctor --listen runs. The output names each direction that fails and
says what to do. With --listen and no HOST:PORT, answer such checks until Ctrl-C. The
messages have 32 bytes and contain nothing about this machine except its time.

Exit codes: 0 all is well, 1 a check failed, 2 wrong usage, 130 stopped by Ctrl-C.`,
		Example: "  ringtrain doctor\n  ringtrain doctor --listen :7946     # on one machine\n  ringtrain doctor 10.0.0.1:7946      # on another",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, target := range args {
				if host, port, err := net.SplitHostPort(target); err != nil || host == "" || !nonzero(port) {
					return usagef("the address to check must be HOST:PORT, where ringtrain doctor --listen runs, not %q", target)
				}
			}
			if _, _, err := net.SplitHostPort(listen); err != nil && cmd.Flags().Changed("listen") {
				return usagef("--listen must be ADDRESS:PORT or :PORT, not %q", listen)
			}
			if listen != "" && len(args) == 0 && asJSON {
				return usagef("--listen answers checks until Ctrl-C and has no result for --json: leave out --json, or add the HOST:PORT to check")
			}
			return a.doctor(cmd.Context(), args, listen, asJSON)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "answer checks at `ADDRESS:PORT`; with HOST:PORT, receive the answers there (default any free port)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// doctor runs "doctor".
func (a *app) doctor(ctx context.Context, targets []string, listen string, asJSON bool) error {
	return untilSignal(ctx, func(ctx context.Context) error {
		if listen != "" && len(targets) == 0 {
			return a.answerUntil(ctx, listen)
		}
		return a.examine(ctx, targets, listen, asJSON)
	})
}

// examine makes a diagnosis and shows it. If ctx ends, it shows no check that this may
// have made fail.
func (a *app) examine(ctx context.Context, targets []string, listen string, asJSON bool) error {
	d := diagnosis{Build: build.Read(), Machine: machine.This(), Interfaces: carriers(), Choices: storedChoices(), GPU: device.Inspect(), Checks: askSelf(ctx)}
	multiplies, problem := multiplier(ctx)
	d.Products, d.Checks = multiplies, append(d.Checks, problem...)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !asJSON {
		d.write(a.stdout)
	}
	for _, target := range targets {
		found := query.Reach(ctx, target, listen)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if d.Checks = append(d.Checks, found...); !asJSON {
			writeChecks(a.stdout, found)
		}
	}
	if asJSON {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(d); err != nil {
			return err
		}
	}
	failed := 0
	for _, c := range d.Checks {
		if !c.OK {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(d.Checks))
	}
	return nil
}

// askSelf checks that processes of this machine reach each other.
func askSelf(ctx context.Context) []query.Check {
	ans, err := query.Answer("127.0.0.1:0", nil)
	if err != nil {
		return []query.Check{{Name: "loopback", Detail: err.Error(), Do: "bring the loopback interface up: ip link set lo up"}}
	}
	defer ans.Close()
	c := query.Check{Name: "loopback", OK: true, Detail: "TCP and UDP work"}
	for _, found := range query.Reach(ctx, ans.Addr().String(), "") {
		if !found.OK {
			return []query.Check{found}
		}
		if c.RTT == 0 {
			c.RTT = found.RTT
		}
	}
	return []query.Check{c}
}

// answerUntil is the other end of doctor: it answers probes until ctx ends.
func (a *app) answerUntil(ctx context.Context, addr string) error {
	ans, err := query.Answer(addr, func(line string) { fmt.Fprintln(a.stderr, line) })
	if err != nil {
		return usagef("--listen %s: %w", addr, err)
	}
	where := ans.Addr().String()
	if ans.Addr().Addr().IsUnspecified() {
		where = fmt.Sprintf("ADDRESS:%d, with an address of this machine", ans.Addr().Port())
	}
	fmt.Fprintf(a.stderr, "listening at %v; on the other machines: ringtrain doctor %s\n", ans.Addr(), where)
	<-ctx.Done()
	return ans.Close()
}

// nonzero reports whether a port can be connected to.
func nonzero(port string) bool {
	n, _ := strconv.Atoi(port)
	return n != 0
}

// carriers returns the interfaces that are up.
func carriers() []carrier {
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var up []carrier
	for _, i := range list {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		c := carrier{Name: i.Name, MTU: i.MTU, Addrs: []string{}}
		addrs, _ := i.Addrs() // none is what there is to show then
		for _, addr := range addrs {
			c.Addrs = append(c.Addrs, addr.String())
		}
		up = append(up, c)
	}
	return up
}

// write writes everything except the checks with other machines.
func (d diagnosis) write(w io.Writer) {
	writeBuild(w, d.Build)
	m := d.Machine
	fmt.Fprintf(w, "kernel    %s\n", m.Kernel)
	fmt.Fprintf(w, "cores     %d of %d usable, GOMAXPROCS %d", m.Cores, m.Online, m.GOMAXPROCS)
	if m.Quota > 0 {
		fmt.Fprintf(w, ", quota %.2f", m.Quota)
	}
	fmt.Fprintf(w, "\nmemory    %s, %s available", machine.GiB(m.Memory), machine.GiB(m.Available))
	if m.Limit > 0 {
		fmt.Fprintf(w, ", limit %s", machine.GiB(m.Limit))
	}
	instructions := "plain loops"
	if m.Instructions != "" {
		instructions = m.Instructions
	}
	fmt.Fprintf(w, "\nSIMD      %s, for reductions\nproducts  %s", instructions, d.Products.Name)
	if d.Products.Instructions != "" {
		fmt.Fprintf(w, " with %s", d.Products.Instructions)
	}
	fmt.Fprintf(w, "\nclock     %s", m.Time)
	if m.Clock != "" {
		fmt.Fprintf(w, ", source %s", m.Clock)
	}
	fmt.Fprintln(w)
	for _, c := range d.Interfaces {
		fmt.Fprintf(w, "network   %s, MTU %d: %s\n", c.Name, c.MTU, strings.Join(c.Addrs, " "))
	}
	writeChoices(w, d.Choices)
	writeGPUs(w, d.GPU)
	writeChecks(w, d.Checks)
}

func writeChecks(w io.Writer, checks []query.Check) {
	for _, c := range checks {
		if c.OK {
			fmt.Fprintf(w, "ok        %s: %s\n", c.Name, c.Detail)
			continue
		}
		fmt.Fprintf(w, "FAILED    %s: %s; %s\n", c.Name, c.Detail, c.Do)
	}
}
