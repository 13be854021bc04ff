package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// With this variable set, TestWrapped is a process of a job.
const envWrapped = "RINGTRAIN_TEST_WRAPPED"

// Processes that MPICH starts directly, by a script or by nested scripts have the same
// job: that of this process, which stands for the launcher.
func TestWrapped(t *testing.T) {
	if os.Getenv(envWrapped) != "" {
		l, err := cluster.FromLauncher(os.Getenv)
		require.NoError(t, err)
		fmt.Println("job", l.Job)
		return
	}
	run := `"$0" -test.run '^TestWrapped$' -test.v; exit $?`
	for rank, args := range [][]string{
		{os.Args[0], "-test.run", "^TestWrapped$", "-test.v"},
		{"sh", "-c", run, os.Args[0]},
		{"sh", "-c", `sh -c '` + `"$0" -test.run TestWrapped -test.v; exit $?` + `' "$0"; exit $?`, os.Args[0]},
	} {
		p := exec.Command(args[0], args[1:]...)
		p.Env = append(os.Environ(), envWrapped+"=1", "PMI_RANK="+strconv.Itoa(rank), "PMI_SIZE=3", "MPI_LOCALRANKID="+strconv.Itoa(rank), "MPI_LOCALNRANKS=3")
		out, err := p.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), fmt.Sprintf("job %d\n", os.Getpid()), "%v", args)
	}
}
