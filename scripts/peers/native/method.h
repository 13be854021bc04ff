/* How every program of the comparison is measured, and what a library must provide.
 * The method is that of ringtrain's own bench (bench/run.go). */
#ifndef PEERS_METHOD_H
#define PEERS_METHOD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A library is one rank's access to a library. Any failure ends the process with a
 * message, because a measurement cannot recover. */
struct library {
	const char *transport;
	int rank, ranks;
	void *self; /* passed to each function */

	/* prepare gets the arguments of call until the next prepare. It is not timed. */
	void (*prepare)(void *self, float *result, float *input, size_t count);
	/* call makes one call of the operation; count is as in MPI, and rank 0 is the root. All
	 * but alltoall are in place: the input is the result's memory, for allgather and gather
	 * the rank's part of it, and a reducescatter or scatter leaves its result at the
	 * beginning. */
	void (*call)(void *self, float *result, float *input, size_t count);
	void (*barrier)(void *self);
	/* gather stores every rank's mine in every, in rank order. */
	void (*gather)(void *self, double *mine, double *every, size_t count);
};

/* measure measures an operation of "ringtrain bench collective" with each size, given as
 * decimal digits in bytes. Rank 0 writes a JSON array to stdout, with those fields of
 * "ringtrain bench collective --json" that the tables need. */
void measure(const struct library *l, const char *operation, int sizes, char **size);

/* fail ends the process. */
void fail(const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
