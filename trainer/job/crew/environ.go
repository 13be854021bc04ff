package crew

import (
	"os"
	"strconv"
	"strings"
)

// leastThreads is the least GOMAXPROCS of a worker. With 1, heartbeats and the garbage
// collector would interrupt steps. And each sleep in the kernel would let the runtime take
// the worker's only P away, so the runtime's monitor would be woken with every message
// from another host: a tenth of the processor time of 8 ranks on 2 cores.
const leastThreads = 2

// runtimeEnviron returns variables for the runtimes of a worker, without those that the
// user has set. share is the worker's share of the cores.
func runtimeEnviron(share int) (env []string) {
	if os.Getenv("GOMAXPROCS") == "" {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(max(leastThreads, share)))
	}
	if set := os.Getenv(tunables); !strings.Contains(set, rseq) {
		env = append(env, tunables+"="+strings.TrimPrefix(set+":"+rseq+"=0", ":"))
	}
	return env
}

// glibc registers each thread for restartable sequences, even those of programs that have
// none. Then the kernel writes to the thread's memory each time it gets a core, which makes
// a small call of ranks that share cores take 7 % longer.
const (
	tunables = "GLIBC_TUNABLES"
	rseq     = "glibc.pthread.rseq"
)
