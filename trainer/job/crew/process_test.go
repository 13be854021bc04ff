package crew

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// A process is a launcher, the launcher of one worker under mpirun, or a worker.
func TestThisProcess(t *testing.T) {
	for _, name := range []string{cluster.EnvNode, "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE"} {
		t.Setenv(name, "")
	}
	p, err := ThisProcess()
	require.NoError(t, err)
	require.False(t, p.IsWorker())
	require.False(t, p.Follows())
	_, _, told := p.Shape()
	require.False(t, told)
	launched := errors.New("launched")
	require.ErrorIs(t, p.Run(t.Context(), Part{Launch: func(context.Context) error { return launched }}), launched)

	for name, value := range map[string]string{"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "PMIX_NAMESPACE": "1"} {
		t.Setenv(name, value)
	}
	p, err = ThisProcess()
	require.NoError(t, err)
	require.False(t, p.IsWorker())
	require.True(t, p.Follows(), "rank 0's launcher shows the job")
	workers, nodes, told := p.Shape()
	require.Equal(t, []any{2, 1, true}, []any{workers, nodes, told})

	for name, value := range map[string]string{cluster.EnvNode: "n", cluster.EnvLocalSize: "3", cluster.EnvNodes: "2"} {
		t.Setenv(name, value)
	}
	p, err = ThisProcess()
	require.NoError(t, err)
	require.True(t, p.IsWorker())
	require.Nil(t, p.Launched, "mpirun started the launcher, not this worker")
	workers, nodes, told = p.Shape()
	require.Equal(t, []any{3, 2, true}, []any{workers, nodes, told})

	t.Setenv(cluster.EnvLocalSize, "three")
	_, err = ThisProcess()
	require.ErrorContains(t, err, cluster.EnvLocalSize)
}
