/* Measures MPI_Allreduce. Usage: mpirun -np N ./openmpi TRANSPORT BYTES...
 * TRANSPORT is only a name for the report; mpirun's options choose the real one. */
#include "method.h"

#include <limits.h>
#include <mpi.h>

static void prepare(void *self, float *data, size_t count) {
	(void)self, (void)data;
	if (count > INT_MAX)
		fail("MPI counts elements in an int: %zu are too many", count);
}

/* We check no errors: MPI's default handler ends the job with a message. */
static void allreduce(void *self, float *data, size_t count) {
	(void)self;
	MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(void *self) {
	(void)self;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void gather(void *self, double *mine, double *every, size_t count) {
	(void)self;
	MPI_Allgather(mine, (int)count, MPI_DOUBLE, every, (int)count, MPI_DOUBLE, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	if (argc < 3)
		fail("usage: openmpi TRANSPORT BYTES...");
	struct library l = {.transport = argv[1], .prepare = prepare, .allreduce = allreduce, .barrier = barrier, .gather = gather};
	MPI_Comm_rank(MPI_COMM_WORLD, &l.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &l.ranks);
	measure(&l, argc - 2, argv + 2);
	MPI_Finalize();
	return 0;
}
