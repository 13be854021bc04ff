/* How every program of the comparison is measured, and what a library must
 * bring for it. The method is that of ringtrain's own bench (bench/run.go). */
#ifndef PEERS_METHOD_H
#define PEERS_METHOD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A library is one rank's access to it. What fails ends the process with a
 * message; there is nothing else that a measurement could do. */
struct library {
	const char *transport;
	int rank, ranks;
	void *self; /* handed to each function */

	/* prepare is told the memory that calls of allreduce will use until the
	 * next prepare; it is not timed. */
	void (*prepare)(void *self, float *data, size_t count);
	/* allreduce sums data over the ranks, in place. */
	void (*allreduce)(void *self, float *data, size_t count);
	void (*barrier)(void *self);
	/* gather puts every rank's mine into every, in rank order. */
	void (*gather)(void *self, double *mine, double *every, size_t count);
};

/* measure measures an allreduce of each size, given as decimal digits in bytes.
 * Rank 0 writes a JSON array to stdout: the fields of "ringtrain bench
 * collective --json" of which the tables are made. */
void measure(const struct library *l, int sizes, char **size);

/* fail ends the process. */
void fail(const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
