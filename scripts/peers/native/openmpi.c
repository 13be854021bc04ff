/* Measures an operation of Open MPI. Usage: mpirun -np N ./openmpi OPERATION TRANSPORT
 * BYTES... TRANSPORT is only a name for the report; mpirun's options choose the real one. */
#include "method.h"

#include <limits.h>
#include <mpi.h>
#include <string.h>

static void prepare(void *self, float *result, float *input, size_t count) {
	(void)self, (void)result, (void)input;
	if (count > INT_MAX)
		fail("MPI counts elements in an int: %zu are too many", count);
}

/* We check no errors: MPI's default handler ends the job with a message. */
static void allreduce(void *self, float *result, float *input, size_t count) {
	(void)self, (void)input;
	MPI_Allreduce(MPI_IN_PLACE, result, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void allgather(void *self, float *result, float *input, size_t count) {
	(void)self, (void)input;
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, result, (int)count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void broadcast(void *self, float *result, float *input, size_t count) {
	(void)self, (void)input;
	MPI_Bcast(result, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void reducescatter(void *self, float *result, float *input, size_t count) {
	(void)self, (void)input;
	MPI_Reduce_scatter_block(MPI_IN_PLACE, result, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(void *self, float *result, float *input, size_t count) {
	(void)self;
	MPI_Alltoall(input, (int)count, MPI_FLOAT, result, (int)count, MPI_FLOAT, MPI_COMM_WORLD);
}

/* Rank 0 is the root, whose input and result are the same memory. */

static void reduce(void *self, float *result, float *input, size_t count) {
	int root = ((struct library *)self)->rank == 0;
	MPI_Reduce(root ? MPI_IN_PLACE : input, root ? result : NULL, (int)count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void gather_parts(void *self, float *result, float *input, size_t count) {
	int root = ((struct library *)self)->rank == 0;
	MPI_Gather(root ? MPI_IN_PLACE : input, (int)count, MPI_FLOAT, root ? result : NULL, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void scatter(void *self, float *result, float *input, size_t count) {
	int root = ((struct library *)self)->rank == 0;
	MPI_Scatter(root ? input : NULL, (int)count, MPI_FLOAT, root ? MPI_IN_PLACE : result, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static const struct {
	const char *name;
	void (*call)(void *self, float *result, float *input, size_t count);
} calls[] = {
	{"allreduce", allreduce},
	{"allgather", allgather},
	{"broadcast", broadcast},
	{"reducescatter", reducescatter},
	{"alltoall", alltoall},
	{"reduce", reduce},
	{"gather", gather_parts},
	{"scatter", scatter},
};

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
	if (argc < 4)
		fail("usage: openmpi OPERATION TRANSPORT BYTES...");
	struct library l = {.transport = argv[2], .prepare = prepare, .barrier = barrier, .gather = gather};
	l.self = &l;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (strcmp(calls[i].name, argv[1]) == 0)
			l.call = calls[i].call;
	if (!l.call)
		fail("%s is not an operation", argv[1]);
	MPI_Comm_rank(MPI_COMM_WORLD, &l.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &l.ranks);
	measure(&l, argv[1], argc - 3, argv + 3);
	MPI_Finalize();
	return 0;
}
