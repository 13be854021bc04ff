package job

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

func TestPlanText(t *testing.T) {
	ring := schedule.Plan{Method: schedule.Ring, Segment: 4096}
	require.Equal(t, "alone", planText(ring, 1))
	require.Equal(t, "ring among 3 ranks, in ring order, messages of 4096 elements", planText(ring, 3))
	require.Equal(t, "memory shared by 3 ranks, in ring order", planText(schedule.Plan{Method: schedule.Shared}, 3))
	found := false
	for m := range schedule.Method(20) { // there are fewer
		if text := m.String(); text != "" && !m.RingOrdered() && !strings.Contains(text, "(") {
			found = true
			require.Contains(t, planText(schedule.Plan{Method: m}, 2), ", in an order of its own, ", m)
		}
	}
	require.True(t, found, "some methods do not keep ring order")
	bf16, err := trainer.ParseCompression("topk:0.01")
	require.NoError(t, err)
	require.Equal(t, "alone, as topk:0.01", gatherText(bf16, 1))
	require.Equal(t, "gathered as topk:0.01 by 4 ranks, summed by each in ring order", gatherText(bf16, 4))
}

// placed is a Problem whose rows take so many bytes on a device.
type placed int

func (p placed) Memory() catalog.Memory                   { return catalog.Memory{Resident: int(p)} }
func (placed) Rows() (train, test int)                    { return 0, 0 }
func (placed) Declare() (*nn.Builder, error)              { return nn.NewBuilder(0), nil }
func (placed) Probe(nn.Backend) (catalog.Probe, error)    { return catalog.Probe{}, nil }
func (placed) Open(context.Context) (catalog.Rows, error) { return nil, nil }

// onHost is a Problem with a layer that computes on the host.
type onHost struct{ placed }

func (onHost) Declare() (*nn.Builder, error) {
	b := nn.NewBuilder(0)
	b.Scope("layers.1").OnHost()
	return b, nil
}

// The reasons by which flags rule out graphs.
func TestWithoutGraphs(t *testing.T) {
	s := &Training{Workers: 2, micro: 1, Problem: placed(0)}
	s.Spec.Place.Nodes = 1
	require.ErrorContains(t, s.withoutGraphs(), "the task cannot keep its rows")
	s.Problem = placed(1)
	require.NoError(t, s.withoutGraphs())
	s.Problem = onHost{placed(1)}
	require.EqualError(t, s.withoutGraphs(), "the layer layers.1 computes on the host")
	s.Problem = placed(1)
	s.Spec.Order = tuned.Choice{Order: "ring", Given: true}
	require.ErrorIs(t, s.withoutGraphs(), errHostAdds, "NCCL keeps no ring order")
	s.Workers = 1
	require.NoError(t, s.withoutGraphs(), "one rank sums nothing")
	s.Workers, s.Spec.Order, s.Spec.Device.NCCL = 2, tuned.Choice{}, "off"
	require.ErrorIs(t, s.withoutGraphs(), errHostAdds)
	s.Spec.Device.NCCL, s.Spec.Gradients.Faithful = "auto", true
	require.ErrorContains(t, s.withoutGraphs(), "--faithful-accumulate")
	s.Spec.Gradients.Faithful, s.micro = false, 2
	require.ErrorContains(t, s.withoutGraphs(), "--accumulate")
	for _, how := range []string{device.GraphsAuto, device.GraphsOff, ""} {
		s.Spec.Graphs.How = how
		require.NoError(t, s.checkGraphs(), "they are optional")
	}
	s.Spec.Graphs.How = device.GraphsApart
	require.EqualError(t, s.checkGraphs(), "--graphs apart: the workers compute on the CPU")
}

// Ranks do not compare what each machine may choose.
func TestAlikeLeavesOutRay(t *testing.T) {
	a := describe(t, smallSpec(t, "[training]\nbatch_size = 16\n[ray]\nnum_workers = 2\n"))
	b := describe(t, smallSpec(t, "[training]\nbatch_size = 16\n[ray]\nnum_workers = 1\nnum_cpus = 1\n"))
	require.Equal(t, a.trained(), b.trained())
	c := describe(t, smallSpec(t, "[training]\nbatch_size = 17\n"))
	require.NotEqual(t, a.trained().Value, c.trained().Value)
	require.Contains(t, a.trained().Parts, trainer.Setting{Name: "training.batch_size", Value: "16"})
	require.Contains(t, c.trained().Parts, trainer.Setting{Name: "training.batch_size", Value: "17"})
	require.Contains(t, a.trained().Parts, trainer.Setting{Name: "model.hidden_width", Value: "8"})

	require.Equal(t, []trainer.Setting{{Name: "a", Value: "1"}, {Name: "b.c", Value: `"x"`}, {Name: "b.d", Value: "{}"}, {Name: "e", Value: "[1,2]"}},
		keysOf("", map[string]any{"e": []any{1, 2}, "b": map[string]any{"d": map[string]any{}, "c": "x"}, "a": 1}))
}

func TestCheckMetrics(t *testing.T) {
	require.NoError(t, CheckMetrics("127.0.0.1:9400"))
	require.NoError(t, CheckMetrics(":9400"))
	require.NoError(t, CheckMetrics("[::1]:65535"))
	for _, addr := range []string{"", "9400", "127.0.0.1", "127.0.0.1:"} {
		require.EqualError(t, CheckMetrics(addr), fmt.Sprintf("--metrics must be ADDRESS:PORT, such as 127.0.0.1:9400, not %q", addr))
	}
	for _, addr := range []string{"a:0", "a:65536", "a:-1", "a:http"} {
		require.EqualError(t, CheckMetrics(addr), fmt.Sprintf("the port of --metrics must be a number from 1 to 65535, not %q", addr))
	}
}

// A metrics port in use is an error before anything starts, and names the worker.
func TestMetricsOfASecondWorker(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	w := Watch{Metrics: "127.0.0.1:" + strconv.Itoa(port-1)}
	err = w.checkMetrics(2, crew.Process{})
	require.ErrorContains(t, err, fmt.Sprintf("--metrics %s: worker ", w.Metrics))
	require.ErrorContains(t, err, " of 2 cannot serve there: ")
	require.NoError(t, (&Watch{}).checkMetrics(9, crew.Process{}))

	second := crew.Process{Launched: &cluster.Launched{Rank: 1, Size: 2, Local: 1, LocalSize: 2, Nodes: 1}}
	require.ErrorContains(t, w.checkMetrics(2, second), ": worker 1 of 2 cannot serve there: ")
	w.Metrics = taken.Addr().String()
	require.NoError(t, w.checkMetrics(1, second), "the launcher of worker 0 tests its port")
}

// Taps observe the calls and steps of a rank until they are closed.
func TestTapsOfARank(t *testing.T) {
	require.Nil(t, newTaps(Watch{}))
	var none *taps
	require.NoError(t, none.open(collective.View{}, 0))
	require.Nil(t, none.observer())
	require.Nil(t, none.observers(nil))
	none.close(nil)

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	dir := t.TempDir()
	one := newTaps(Watch{Trace: dir, Metrics: addr})
	views, _ := collective.Local(2)
	require.NoError(t, one.open(views[1], 0))
	one.observers(crew.NewPulse()).Stepped(trainer.StepEvent{Step: 1})
	one.Called(collective.Call{}, 1, 1, time.Millisecond, errors.New("lost"))
	page, err := http.Get("http://" + addr + "/metrics")
	require.NoError(t, err)
	require.NoError(t, page.Body.Close())
	require.Equal(t, http.StatusOK, page.StatusCode)
	var said strings.Builder
	one.close(&said)
	require.Empty(t, said.String())
	text, err := os.ReadFile(filepath.Join(dir, "trace-1.json"))
	require.NoError(t, err)
	require.NotEmpty(t, text)
	_, err = net.Dial("tcp", addr)
	require.Error(t, err, "the port is closed")

	missing := newTaps(Watch{Trace: filepath.Join(dir, "none")})
	require.ErrorContains(t, missing.open(views[0], 0), "--trace: ")
}
