//go:build linux && (amd64 || arm64) && !static

package emulator

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// NCCL's constants.
const (
	sum           = 0
	ncclFloat     = 7
	invalidUsage  = 5
	ncclPending   = 7
	sendsMost     = 1 << 17 // elements, more than a box holds
	ranksOfTest   = 3
	quietInterval = 200 * time.Millisecond
)

// A rank is one member of a communicator, with its own device and stream.
type rank struct {
	t            *testing.T
	cuda, nccl   *Library
	comm, stream uintptr
	rank, size   int
}

func openNCCL(t *testing.T, env []string) *Library {
	t.Helper()
	lib, err := Open(env, "RINGTRAIN_NCCL_LIB")
	require.NoError(t, err)
	return lib
}

// newRank makes a device current on this thread. The caller has locked the thread.
func newRank(t *testing.T, env []string, device, r, size int) *rank {
	cuda, err := Open(env, "RINGTRAIN_CUDA_LIB")
	require.NoError(t, err)
	k := &rank{t: t, cuda: cuda, nccl: openNCCL(t, env), rank: r, size: size}
	var context uintptr
	require.Zero(t, cuda.Call("cuInit", 0))
	require.Zero(t, cuda.Call("cuDevicePrimaryCtxRetain", &context, device))
	require.Zero(t, cuda.Call("cuCtxSetCurrent", context))
	require.Zero(t, cuda.Call("cuStreamCreate", &k.stream, 1))
	return k
}

func uniqueID(t *testing.T, env []string) [128]byte {
	var id [128]byte
	require.Zero(t, openNCCL(t, env).Call("ncclGetUniqueId", &id))
	return id
}

func (k *rank) join(id *[128]byte) {
	require.Zero(k.t, k.nccl.Call("rt_init_rank", &k.comm, k.size, id, k.rank, 1))
}

func (k *rank) up(v []float32) uintptr {
	var at uintptr
	require.Zero(k.t, k.cuda.Call("cuMemAlloc_v2", &at, 4*len(v)))
	require.Zero(k.t, k.cuda.Call("cuMemcpyHtoD_v2", at, &v[0], 4*len(v)))
	return at
}

func (k *rank) down(at uintptr, n int) []float32 {
	v := make([]float32, n)
	require.Zero(k.t, k.cuda.Call("cuStreamSynchronize", k.stream))
	require.Zero(k.t, k.cuda.Call("cuMemcpyDtoH_v2", &v[0], at, 4*n))
	return v
}

func (k *rank) do(function string, args ...any) {
	k.t.Helper()
	require.Zero(k.t, k.nccl.Call(function, append(args, k.comm, k.stream)...), function)
}

// ranks runs f for each of size ranks, each on its own device.
func ranks(t *testing.T, size int, f func(k *rank)) {
	t.Helper()
	env := stand(t)
	t.Setenv("RINGTRAIN_EMULATOR_DEVICES", strconv.Itoa(size))
	id := uniqueID(t, env)
	var all sync.WaitGroup
	for r := range size {
		all.Go(func() {
			runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
			k := newRank(t, env, r, r, size)
			defer k.cuda.Call("cuDevicePrimaryCtxRelease_v2", r)
			k.join(&id)
			f(k)
		})
	}
	all.Wait()
}

// of returns rank r's operand, small integers, so that sums are exact.
func of(r, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32((i+1)*(r+1)%1000 + r)
	}
	return v
}

func TestCollectives(t *testing.T) {
	ranks(t, ranksOfTest, func(k *rank) {
		for _, n := range []int{1, 1000, sendsMost} {
			total := make([]float32, n)
			for r := range k.size {
				for i, v := range of(r, n) {
					total[i] += v
				}
			}
			x, y := k.up(of(k.rank, n)), k.up(make([]float32, n*k.size))
			k.do("ncclAllReduce", x, y, n, ncclFloat, sum)
			require.Equal(t, total, k.down(y, n))
			k.do("ncclBroadcast", x, y, n, ncclFloat, 1)
			require.Equal(t, of(1, n), k.down(y, n))
			k.do("ncclAllGather", x, y, n, ncclFloat)
			for r := range k.size {
				require.Equal(t, of(r, n), k.down(y+uintptr(4*n*r), n))
			}
			whole := k.up(of(k.rank, n*k.size))
			k.do("ncclReduceScatter", whole, y, n, ncclFloat, sum)
			want := make([]float32, n)
			for r := range k.size {
				for i, v := range of(r, n*k.size)[k.rank*n : (k.rank+1)*n] {
					want[i] += v
				}
			}
			require.Equal(t, want, k.down(y, n))
		}
		require.Zero(t, k.nccl.Call("ncclCommDestroy", k.comm))
	})
}

// In a group, each rank sends to the next and receives from the previous one. Without a group,
// this would deadlock.
func TestSendAndReceive(t *testing.T) {
	ranks(t, ranksOfTest, func(k *rank) {
		next, before := (k.rank+1)%k.size, (k.rank+k.size-1)%k.size
		x, y := k.up(of(k.rank, sendsMost)), k.up(make([]float32, sendsMost))
		require.Zero(t, k.nccl.Call("ncclGroupStart"))
		k.do("ncclSend", x, sendsMost, ncclFloat, next)
		k.do("ncclRecv", y, sendsMost, ncclFloat, before)
		require.Zero(t, k.nccl.Call("ncclGroupEnd"))
		require.Equal(t, of(before, sendsMost), k.down(y, sendsMost))
		require.Zero(t, k.nccl.Call("ncclCommDestroy", k.comm))
	})
}

func TestSplit(t *testing.T) {
	ranks(t, ranksOfTest, func(k *rank) {
		color := k.rank % 2 // 0 and 2; 1
		var part uintptr
		require.Zero(t, k.nccl.Call("ncclCommSplit", k.comm, color, -k.rank, &part, nil))
		x := k.up([]float32{float32(k.rank)})
		require.Zero(t, k.nccl.Call("ncclAllReduce", x, x, 1, ncclFloat, sum, part, k.stream))
		require.Equal(t, []float32{[]float32{2, 1}[color]}, k.down(x, 1))
		var r int32
		require.Zero(t, k.nccl.Call("ncclCommUserRank", part, &r))
		require.EqualValues(t, []int32{1, 0, 0}[k.rank], r, "by key")
		require.Zero(t, k.nccl.Call("ncclCommDestroy", part))
		require.Zero(t, k.nccl.Call("ncclCommDestroy", k.comm))
	})
}

// A graph repeats a captured collective. Destroy of the communicator waits until the graph is
// destroyed.
func TestCollectiveInGraph(t *testing.T) {
	ranks(t, 2, func(k *rank) {
		x := k.up([]float32{1})
		var graph, exec uintptr
		require.Zero(t, k.cuda.Call("cuStreamBeginCapture_v2", k.stream, threadLocal))
		k.do("ncclAllReduce", x, x, 1, ncclFloat, sum)
		require.Zero(t, k.cuda.Call("cuStreamEndCapture", k.stream, &graph))
		require.Zero(t, k.cuda.Call("cuGraphInstantiateWithFlags", &exec, graph, 0))
		for range 3 {
			require.Zero(t, k.cuda.Call("cuGraphLaunch", exec, k.stream))
		}
		require.Equal(t, []float32{8}, k.down(x, 1))
		require.Zero(t, k.cuda.Call("cuGraphExecDestroy", exec))
		require.Zero(t, k.cuda.Call("cuGraphDestroy", graph))
		require.Zero(t, k.nccl.Call("ncclCommDestroy", k.comm))
	})
}

// Abort ends the collective of a running graph, and then, like Destroy, waits until the graph is
// destroyed.
func TestAbortWaitsForGraphs(t *testing.T) {
	ranks(t, 2, func(k *rank) {
		x := k.up([]float32{1})
		var graph, exec uintptr
		require.Zero(t, k.cuda.Call("cuStreamBeginCapture_v2", k.stream, threadLocal))
		k.do("ncclAllReduce", x, x, 1, ncclFloat, sum)
		require.Zero(t, k.cuda.Call("cuStreamEndCapture", k.stream, &graph))
		require.Zero(t, k.cuda.Call("cuGraphInstantiateWithFlags", &exec, graph, 0))
		require.Zero(t, k.cuda.Call("cuGraphDestroy", graph))
		if k.rank == 0 { // the other rank does not
			require.Zero(t, k.cuda.Call("cuGraphLaunch", exec, k.stream))
		}
		aborted := make(chan struct{})
		go func() {
			defer close(aborted)
			k.nccl.Call("ncclCommAbort", k.comm)
		}()
		require.Zero(t, k.cuda.Call("cuStreamSynchronize", k.stream))
		select {
		case <-aborted:
			t.Error("a graph holds the communicator")
		case <-time.After(quietInterval):
		}
		require.Zero(t, k.cuda.Call("cuGraphExecDestroy", exec))
		<-aborted
	})
}

// As with NCCL, the collective of a rank whose peer was aborted finishes without an error, and
// with a wrong result. An aborted rank that finds its peer there sums with it as if nothing had
// happened.
func TestAbortedPeer(t *testing.T) {
	aborted, met := make(chan struct{}), make(chan struct{})
	ranks(t, 2, func(k *rank) {
		x, y := k.up([]float32{float32(1 + k.rank)}), k.up([]float32{5})
		capture := func(v uintptr) (exec uintptr) {
			var graph uintptr
			require.Zero(t, k.cuda.Call("cuStreamBeginCapture_v2", k.stream, threadLocal))
			k.do("ncclAllReduce", v, v, 1, ncclFloat, sum)
			require.Zero(t, k.cuda.Call("cuStreamEndCapture", k.stream, &graph))
			require.Zero(t, k.cuda.Call("cuGraphInstantiateWithFlags", &exec, graph, 0))
			require.Zero(t, k.cuda.Call("cuGraphDestroy", graph))
			return exec
		}
		first, second := capture(x), capture(y)
		var end sync.WaitGroup
		if k.rank == 1 { // waits for rank 0, until it is aborted
			require.Zero(t, k.cuda.Call("cuGraphLaunch", first, k.stream))
			end.Go(func() { k.nccl.Call("ncclCommAbort", k.comm) })
			require.Zero(t, k.cuda.Call("cuStreamSynchronize", k.stream))
			close(aborted)
			<-met
			require.Zero(t, k.cuda.Call("cuGraphLaunch", second, k.stream))
			require.Equal(t, []float32{10}, k.down(y, 1))
		} else {
			<-aborted
			require.Zero(t, k.cuda.Call("cuGraphLaunch", first, k.stream))
			require.NotEqual(t, []float32{3}, k.down(x, 1))
			require.Zero(t, k.cuda.Call("cuGraphLaunch", second, k.stream))
			k.pending() // it waits for rank 1
			close(met)
			require.Equal(t, []float32{10}, k.down(y, 1))
			end.Go(func() { k.nccl.Call("ncclCommAbort", k.comm) })
		}
		require.Zero(t, k.cuda.Call("cuGraphExecDestroy", first))
		require.Zero(t, k.cuda.Call("cuGraphExecDestroy", second))
		end.Wait()
	})
}

// Ranks with different calls get an asynchronous error, and can continue after Abort.
func TestMismatchIsAnAsyncError(t *testing.T) {
	ranks(t, 2, func(k *rank) {
		x := k.up(make([]float32, 8))
		k.do("ncclAllReduce", x, x, 4+k.rank, ncclFloat, sum)
		k.pending()
		var state int32
		require.Zero(t, k.nccl.Call("ncclCommGetAsyncError", k.comm, &state))
		require.EqualValues(t, invalidUsage, state)
		require.Zero(t, k.nccl.Call("ncclCommAbort", k.comm))
		require.Zero(t, k.cuda.Call("cuStreamSynchronize", k.stream))
	})
}

// pending checks that the stream's work does not end for a while.
func (k *rank) pending() {
	k.t.Helper()
	for end := time.After(quietInterval); ; {
		require.Equal(k.t, notReady, k.cuda.Call("cuStreamQuery", k.stream))
		select {
		case <-end:
			return
		default:
			runtime.Gosched()
		}
	}
}

// A non-blocking communicator reports that it is starting until all ranks have joined.
func TestStartWithoutBlocking(t *testing.T) {
	env := stand(t)
	runtime.LockOSThread()
	k := newRank(t, env, 0, 0, 2)
	defer k.cuda.Call("cuDevicePrimaryCtxRelease_v2", 0)
	id := uniqueID(t, env)
	require.Equal(t, ncclPending, k.nccl.Call("rt_init_rank", &k.comm, 2, &id, 0, 0))
	var state int32
	require.Zero(t, k.nccl.Call("ncclCommGetAsyncError", k.comm, &state))
	require.EqualValues(t, ncclPending, state)
	x := k.up([]float32{1})
	require.Equal(t, invalidUsage, k.nccl.Call("ncclAllReduce", x, x, 1, ncclFloat, sum, k.comm, k.stream))
	require.Zero(t, k.nccl.Call("ncclCommAbort", k.comm))
}

// TestRankProcess is a rank in its own process, for TestDeadPeer. It joins, sums once, reports that,
// and waits to be killed.
func TestRankProcess(t *testing.T) {
	text := os.Getenv("RINGTRAIN_TEST_NCCL_ID")
	if text == "" {
		t.Skip("started by TestDeadPeer")
	}
	var id [128]byte
	copy(id[:], text)
	runtime.LockOSThread()
	k := newRank(t, stand(t), 0, 1, 2)
	k.join(&id)
	x := k.up(of(1, 10))
	k.do("ncclAllReduce", x, x, 10, ncclFloat, sum)
	k.down(x, 10)
	fmt.Println("summed")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// If a rank is killed, its peer's collective does not end until it is aborted.
func TestDeadPeer(t *testing.T) {
	env := stand(t)
	t.Setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1") // because two ranks use device 0
	id := uniqueID(t, env)
	self, err := os.Executable()
	require.NoError(t, err)
	peer := exec.CommandContext(t.Context(), self, "-test.run=^TestRankProcess$")
	peer.Env = append(os.Environ(), "RINGTRAIN_TEST_NCCL_ID="+strings.TrimRight(string(id[:]), "\x00"))
	_, err = peer.StdinPipe()
	require.NoError(t, err)
	out, err := peer.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, peer.Start())

	runtime.LockOSThread()
	k := newRank(t, env, 0, 0, 2)
	defer k.cuda.Call("cuDevicePrimaryCtxRelease_v2", 0)
	k.join(&id)
	x := k.up(of(0, 10))
	k.do("ncclAllReduce", x, x, 10, ncclFloat, sum)
	want := of(0, 10)
	for i, v := range of(1, 10) {
		want[i] += v
	}
	require.Equal(t, want, k.down(x, 10))

	said, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(said, []byte("summed")))
	require.NoError(t, peer.Process.Kill())
	require.Error(t, peer.Wait())
	k.do("ncclAllReduce", x, x, 10, ncclFloat, sum)
	k.pending()
	var abort sync.WaitGroup
	abort.Go(func() { k.nccl.Call("ncclCommAbort", k.comm) }) // on another thread, without a context
	require.Zero(t, k.cuda.Call("cuStreamSynchronize", k.stream))
	abort.Wait()
}

// Two ranks on one device are refused unless a variable allows it, which NCCL has since 2.30.3.
func TestDuplicateDevice(t *testing.T) {
	for _, version := range []string{"2.30.7", "2.30.2"} {
		env := stand(t)
		if version == "2.30.2" {
			t.Setenv("RINGTRAIN_EMULATOR_NCCL", version)
			t.Setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1")
		}
		id := uniqueID(t, env)
		codes := make(chan int, 2)
		for r := range 2 {
			go func() {
				runtime.LockOSThread()
				k := newRank(t, env, 0, r, 2)
				defer k.cuda.Call("cuDevicePrimaryCtxRelease_v2", 0)
				codes <- k.nccl.Call("rt_init_rank", &k.comm, 2, &id, r, 1)
			}()
		}
		require.Equal(t, invalidUsage, <-codes, version)
		require.Equal(t, invalidUsage, <-codes, version)
	}
}

// An older NCCL reports its version and refuses newer functions.
func TestVersionOfNCCL(t *testing.T) {
	t.Setenv("RINGTRAIN_EMULATOR_NCCL", "2.17.1")
	ranks(t, 1, func(k *rank) {
		var version int32
		require.Zero(t, k.nccl.Call("ncclGetVersion", &version))
		require.EqualValues(t, 21701, version)
		var part uintptr
		require.Equal(t, invalidUsage, k.nccl.Call("ncclCommSplit", k.comm, 0, 0, &part, nil))
		require.Zero(t, k.nccl.Call("ncclCommDestroy", k.comm))
	})
}
