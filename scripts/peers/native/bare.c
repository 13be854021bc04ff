/* Measures what every library whose vectors are in ordinary memory must do: two
 * processes copy their vector to shared memory, wait for the other's, and add it.
 * They divide large vectors into chunks, and copy one while they add another. There
 * is no algorithm to choose, no header, no check and no error to report, so the time
 * is the processor's: that of moving cache lines from core to core. Over TCP they
 * send their vectors through one connection on loopback, without waiting, and add
 * what arrives.
 * Usage: bare shm|tcp BYTES... */
#define _GNU_SOURCE
#include "method.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { inline_floats = 14, most_shown = 8 << 10, most_gathered = 4096, slots = 4, chunk_floats = 32 << 10 };

#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* A shown has what a rank publishes in every second call: a few floats in the
 * flag's cache line, which is fetched anyway, or more in pages of their own. */
struct shown {
	_Alignas(128) _Atomic uint64_t call;
	float few[inline_floats];
	_Alignas(4096) float many[most_shown / sizeof(float)];
};

/* Staged has the chunks of larger vectors. Slots are used in turn. Before a rank
 * overwrites a slot, it has seen the other rank stage a later chunk. */
struct staged {
	_Alignas(128) _Atomic uint64_t chunks; /* in all calls */
	_Alignas(4096) float slot[slots][chunk_floats];
};

struct shared {
	struct shown shown[2][2];
	struct staged staged[2];
	double gathered[2][most_gathered];
};

struct side {
	struct shared *mem;
	int rank;
	uint64_t calls, chunks;
	int socket; /* with TCP */
	_Alignas(4096) float scratch[64 << 10]; /* received data */
};

/* exchange publishes count floats and returns the other rank's, which are valid
 * until the call after the next. */
static const float *exchange(struct side *s, const float *data, size_t count) {
	uint64_t call = ++s->calls;
	struct shown *mine = &s->mem->shown[s->rank][call & 1], *theirs = &s->mem->shown[!s->rank][call & 1];
	int apart = count > inline_floats;
	memcpy(apart ? mine->many : mine->few, data, count * sizeof *data);
	atomic_store_explicit(&mine->call, call, memory_order_release);
	while (atomic_load_explicit(&theirs->call, memory_order_acquire) < call)
		__builtin_ia32_pause();
	return apart ? theirs->many : theirs->few;
}

static void prepare(void *self, float *result, float *input, size_t count) { (void)self, (void)result, (void)input, (void)count; }

__attribute__((target("avx2"), optimize("O3"))) static void add(float *restrict to, const float *restrict from, size_t count) {
	for (size_t i = 0; i < count; i++)
		to[i] += from[i];
}

static void in_chunks(struct side *s, float *data, size_t count) {
	struct staged *mine = &s->mem->staged[s->rank], *theirs = &s->mem->staged[!s->rank];
	size_t all = (count + chunk_floats - 1) / chunk_floats;
	for (size_t k = 0; k <= all; k++) {
		if (k < all) {
			size_t lo = k * chunk_floats;
			memcpy(mine->slot[(s->chunks + k) % slots], data + lo, MIN(chunk_floats, count - lo) * sizeof *data);
			atomic_store_explicit(&mine->chunks, s->chunks + k + 1, memory_order_release);
		}
		if (k > 0) {
			size_t lo = (k - 1) * chunk_floats;
			while (atomic_load_explicit(&theirs->chunks, memory_order_acquire) < s->chunks + k)
				__builtin_ia32_pause();
			add(data + lo, theirs->slot[(s->chunks + k - 1) % slots], MIN(chunk_floats, count - lo));
		}
	}
	s->chunks += all;
}

static void allreduce(void *self, float *data, float *input, size_t count) {
	(void)input;
	if (count * sizeof *data > most_shown)
		in_chunks(self, data, count);
	else
		add(data, exchange(self, data, count), count);
}

static void barrier(void *self) { exchange(self, NULL, 0); }

/* moved returns how many bytes a socket sent or received, which may be 0. */
static size_t moved(ssize_t n) {
	if (n > 0)
		return n;
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		fail("bare: the connection broke");
	return 0;
}

/* over_tcp never adds beyond what it has sent, because it sends from data. It
 * receives into scratch again and again, which therefore stays in the cache. */
static void over_tcp(void *self, float *data, float *input, size_t count) {
	(void)input;
	struct side *s = self;
	size_t bytes = count * sizeof *data, sent = 0, got = 0, added = 0;
	while (sent < bytes || added < bytes) {
		if (sent < bytes)
			sent += moved(send(s->socket, (char *)data + sent, bytes - sent, MSG_DONTWAIT));
		size_t at = got % sizeof s->scratch, room = MIN(sizeof s->scratch - at, sizeof s->scratch - (got - added));
		if (got < bytes && room > 0)
			got += moved(recv(s->socket, (char *)s->scratch + at, MIN(room, bytes - got), MSG_DONTWAIT));
		size_t from = added % sizeof s->scratch, ready = MIN(MIN(sent, got) - added, sizeof s->scratch - from) / sizeof *data;
		add(data + added / sizeof *data, s->scratch + from / sizeof *data, ready);
		added += ready * sizeof *data;
	}
}

static void tcp_barrier(void *self) {
	float one = 1;
	over_tcp(self, &one, &one, 1);
}

/* connected stores both ends of a TCP connection on loopback in ends. */
static void connected(int ends[2]) {
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof addr;
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || ends[0] < 0 || bind(listener, (struct sockaddr *)&addr, length) != 0 || listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&addr, &length) != 0 || connect(ends[0], (struct sockaddr *)&addr, length) != 0 ||
	    (ends[1] = accept(listener, NULL, NULL)) < 0)
		fail("bare cannot connect its two processes");
	close(listener);
	for (int i = 0; i < 2; i++)
		setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void gather(void *self, double *mine, double *every, size_t count) {
	struct side *s = self;
	for (size_t lo = 0; lo < count; lo += most_gathered) {
		size_t n = count - lo < most_gathered ? count - lo : most_gathered;
		memcpy(s->mem->gathered[s->rank], mine + lo, n * sizeof *mine);
		barrier(s);
		for (int r = 0; r < 2; r++)
			memcpy(every + r * count + lo, s->mem->gathered[r], n * sizeof *mine);
		barrier(s);
	}
}

/* pin binds a rank to its own core. */
static void pin(int rank) {
	cpu_set_t all, one;
	if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
		fail("bare needs two cores");
	for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || seen++ != rank)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof one, &one) != 0)
			fail("bare cannot bind a process to a core");
		return;
	}
}

int main(int argc, char **argv) {
	static struct side s;
	s.mem = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (argc < 3 || s.mem == MAP_FAILED)
		fail("usage: bare shm|tcp BYTES...");
	int tcp = strcmp(argv[1], "tcp") == 0, ends[2];
	if (tcp)
		connected(ends);
	pid_t child = fork();
	if (child < 0)
		fail("bare cannot start its second process");
	s.rank = child == 0;
	pin(s.rank);
	struct library l = {.transport = argv[1], .rank = s.rank, .ranks = 2, .self = &s, .prepare = prepare, .call = allreduce, .barrier = barrier, .gather = gather};
	if (tcp) {
		s.socket = ends[s.rank];
		l.call = over_tcp, l.barrier = tcp_barrier;
	}
	measure(&l, "allreduce", argc - 2, argv + 2);
	int status = 0;
	if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
		fail("bare's second process failed");
	return 0;
}
