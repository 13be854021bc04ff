#include "method.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The same numbers as in bench/run.go, bench/oracle.go and bench/operation.go. */
enum { adapt_min = 5, adapt_max = 20000, warmup = 2, period = 8191 };
static const double adapt_seconds = .25;

void fail(const char *format, ...) {
	va_list args;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void *allocate(size_t bytes) {
	void *p = NULL;
	if (posix_memalign(&p, 4096, bytes ? bytes : 1) != 0)
		fail("no memory for %zu bytes", bytes);
	memset(p, 0, bytes); /* touch the memory before it is timed */
	return p;
}

static double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* input returns element j of a rank's input: 1 to 8, so all sums are exact. */
static float input(int rank, size_t j) {
	uint64_t x = (uint64_t)rank << 32 ^ j % period;
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % 8 + 1;
}

static float sum(int ranks, size_t j) {
	float all = 0;
	for (int r = 0; r < ranks; r++)
		all += input(r, j);
	return all;
}

/* An operation has the correct element j of a part of rank's result, and says whether a
 * rank gives, or gets, one part for each rank, and whether only rank 0, the root, gets a
 * result. busbw is algbw times factor, and times (ranks - 1) / ranks if shared is set. */
struct operation {
	const char *name;
	int gives, gets, factor, shared, only_root;
	float (*want)(const struct library *l, int part, size_t j, size_t count);
};

static float want_allreduce(const struct library *l, int part, size_t j, size_t count) {
	(void)part, (void)count;
	return sum(l->ranks, j);
}

static float want_allgather(const struct library *l, int part, size_t j, size_t count) {
	(void)l, (void)count;
	return input(part, j);
}

static float want_broadcast(const struct library *l, int part, size_t j, size_t count) {
	(void)l, (void)part, (void)count;
	return input(0, j);
}

static float want_reducescatter(const struct library *l, int part, size_t j, size_t count) {
	(void)part;
	return sum(l->ranks, l->rank * count + j);
}

static float want_alltoall(const struct library *l, int part, size_t j, size_t count) {
	return input(part, l->rank * count + j);
}

static float want_scatter(const struct library *l, int part, size_t j, size_t count) {
	(void)part;
	return input(0, l->rank * count + j);
}

static const struct operation operations[] = {
	{"allreduce", 0, 0, 2, 1, 0, want_allreduce},
	{"allgather", 0, 1, 1, 1, 0, want_allgather},
	{"broadcast", 0, 0, 1, 0, 0, want_broadcast},
	{"reducescatter", 1, 0, 1, 1, 0, want_reducescatter},
	{"alltoall", 1, 1, 1, 1, 0, want_alltoall},
	{"reduce", 0, 0, 1, 0, 1, want_allreduce},
	{"gather", 0, 1, 1, 1, 1, want_allgather},
	{"scatter", 1, 0, 1, 1, 0, want_scatter},
	{NULL, 0, 0, 0, 0, 0, NULL},
};

/* A trial measures one size on this rank. */
struct trial {
	const struct library *l;
	const struct operation *op;
	size_t count;                 /* elements of one part */
	size_t bytes;                 /* of all parts: the size */
	size_t given_bytes, got_bytes; /* of the input and of the result, 0 without one */
	float *given, *want, *work;
	float *source; /* of the call: inside work, but for alltoall */
};

/* once makes one iteration: fill, meet the others, call. It returns the seconds of
 * the call alone, and stores when it began. */
static double once(const struct trial *t, double *begin) {
	memset(t->work, 0, t->bytes);
	if (t->source != t->given)
		memcpy(t->source, t->given, t->given_bytes);
	t->l->barrier(t->l->self);
	*begin = seconds();
	t->l->call(t->l->self, t->work, t->source, t->count);
	return seconds() - *begin;
}

/* count_wrong counts wrong elements. It reads the whole result, as a user would. */
static double count_wrong(const struct trial *t) {
	if (memcmp(t->work, t->want, t->got_bytes) == 0)
		return 0;
	double wrong = 0;
	for (size_t j = 0; j < t->got_bytes / sizeof(float); j++)
		wrong += t->work[j] != t->want[j];
	return wrong;
}

/* iterations agrees on as many iterations as fit in a quarter of a second. */
static int iterations(const struct trial *t) {
	const struct library *l = t->l;
	double shortest = INFINITY, slowest = 0;
	for (int i = 0; i < warmup; i++) {
		double begin = seconds(), call;
		once(t, &call);
		shortest = fmin(shortest, seconds() - begin);
	}
	double *every = allocate(l->ranks * sizeof *every);
	l->gather(l->self, &shortest, every, 1);
	for (int r = 0; r < l->ranks; r++)
		slowest = fmax(slowest, every[r]);
	free(every);
	return fmax(adapt_min, fmin(adapt_max, ceil(adapt_seconds / fmax(slowest, 1e-9))));
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* sort_median sorts n numbers and returns the middle one, or the mean of the two in
 * the middle. */
static double sort_median(double *x, int n) {
	qsort(x, n, sizeof *x, ascending);
	return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

/* report writes one record. times (of calls alone) and reads (of calls plus one
 * comparison of their results) are in microseconds. */
static void report(const struct trial *t, double *times, double *reads, int n, double wrong, int first) {
	const struct library *l = t->l;
	double total = 0;
	for (int i = 0; i < n; i++)
		total += times[i];
	double median = sort_median(times, n);
	double p99 = times[(int)ceil(.99 * n) - 1]; /* nearest rank */
	double algbw = median > 0 ? t->bytes / median / 1e3 : 0;
	double factor = t->op->factor * (t->op->shared ? (l->ranks - 1.) / l->ranks : 1);
	printf("%s\n  {\"op\": \"%s\", \"dtype\": \"float32\", \"ranks\": %d, \"transport\": \"%s\", \"size\": %zu, "
	       "\"time_us\": %.3f, \"mean_us\": %.3f, \"p99_us\": %.3f, \"read_us\": %.3f, \"algbw\": %.6f, \"busbw\": %.6f, "
	       "\"wrong\": %.0f, \"iterations\": %d}",
	       first ? "" : ",", t->op->name, l->ranks, l->transport, t->bytes, median, total / n, p99, sort_median(reads, n), algbw,
	       algbw * factor, wrong, n);
	fflush(stdout);
}

/* slowest stores the largest of all ranks' x[i] in x[i] of rank 0, for i < n, and
 * the sum of all ranks' x[n] in x[n]. every has room for all. */
static void slowest(const struct library *l, double *x, double *every, int n) {
	l->gather(l->self, x, every, n + 1);
	for (int r = 0; l->rank == 0 && r < l->ranks; r++) {
		const double *theirs = every + (size_t)r * (n + 1);
		for (int i = 0; i < n; i++)
			x[i] = fmax(x[i], theirs[i]);
		x[n] += r > 0 ? theirs[n] : 0;
	}
}

/* measure_size makes the iterations. In each the slowest rank counts. */
static void measure_size(const struct trial *t, int first) {
	const struct library *l = t->l;
	int n = iterations(t);
	double *times = allocate((n + 1) * sizeof *times); /* and the wrong elements */
	double *reads = allocate((n + 1) * sizeof *reads); /* and a 0 */
	double *every = allocate((size_t)(n + 1) * l->ranks * sizeof *every);
	for (int i = 0; i < n; i++) {
		double begin;
		times[i] = once(t, &begin) * 1e6;
		times[n] += count_wrong(t);
		reads[i] = (seconds() - begin) * 1e6;
	}
	slowest(l, times, every, n);
	slowest(l, reads, every, n);
	if (l->rank == 0)
		report(t, times, reads, n, times[n], first);
	free(times);
	free(reads);
	free(every);
}

void measure(const struct library *l, const char *operation, int sizes, char **size) {
	const struct operation *op = operations;
	while (op->name && strcmp(op->name, operation) != 0)
		op++;
	if (!op->name)
		fail("%s is not an operation", operation);
	size_t spread = op->gives || op->gets ? l->ranks : 1, last = 0;
	int measured = 0;
	if (l->rank == 0)
		printf("[");
	for (int i = 0; i < sizes; i++) {
		size_t bytes = strtoull(size[i], NULL, 10);
		if (bytes == 0 || bytes % sizeof(float) != 0)
			fail("%s is not a multiple of the 4 bytes of a float32", size[i]);
		struct trial t = {.l = l, .op = op, .count = bytes / sizeof(float) / spread};
		t.count = t.count ? t.count : 1;
		if (t.count == last)
			continue;
		last = t.count;
		size_t part = t.count * sizeof(float);
		t.bytes = spread * part;
		t.given_bytes = op->gives ? t.bytes : part;
		t.got_bytes = op->only_root && l->rank != 0 ? 0 : op->gets ? t.bytes : part;
		t.given = allocate(t.given_bytes);
		t.want = allocate(t.got_bytes);
		t.work = allocate(t.bytes);
		t.source = op->gives && op->gets ? t.given : op->gets ? t.work + l->rank * t.count : t.work;
		for (size_t j = 0; j < t.given_bytes / sizeof(float); j++)
			t.given[j] = input(l->rank, j);
		for (size_t j = 0; j < t.got_bytes / sizeof(float); j++)
			t.want[j] = op->want(l, j / t.count, j % t.count, t.count);
		l->prepare(l->self, t.work, t.source, t.count);
		measure_size(&t, measured++ == 0);
		free(t.given);
		free(t.want);
		free(t.work);
	}
	if (l->rank == 0)
		printf("\n]\n");
}
