//go:build gpu && cgo && linux

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_gpu.h"

_Static_assert(sizeof(rt_nccl_id) == 128, "ncclUniqueId");
_Static_assert(sizeof(rt_nccl_config) == 24, "ncclConfig_t of 2.14");
_Static_assert(offsetof(rt_nccl_config, magic) == 8, "ncclConfig_t.magic");
_Static_assert(offsetof(rt_nccl_config, version) == 12, "ncclConfig_t.version");
_Static_assert(offsetof(rt_nccl_config, blocking) == 16, "ncclConfig_t.blocking");

enum { success = 0, system_error = 2, invalid_argument = 4, in_progress = 7, undefined = INT_MIN };

static rt_nccl nccl;

static const rt_nccl_config config = {
	.size = sizeof(rt_nccl_config),
	.magic = 0xcafebeef,
	.version = 21400,
	.blocking = 0,
	.pad = undefined,
};

void rt_nccl_bind(const uintptr_t *addresses) { memcpy(&nccl, addresses, sizeof nccl); }

int rt_nccl_version(int *version) { return nccl.version(version); }
int rt_nccl_unique_id(rt_nccl_id *id) { return nccl.unique_id(id); }
const char *rt_nccl_error_string(int result) { return nccl.error_string(result); }
static rt_nccl_comm at_end(rt_nccl_end end) { return __atomic_load_n(end, __ATOMIC_ACQUIRE); }

const char *rt_nccl_last_error(rt_nccl_end end) {
	return nccl.last_error == NULL ? NULL : nccl.last_error(end == NULL ? NULL : at_end(end));
}

int rt_nccl_init(rt_nccl_end *end, int size, const rt_nccl_id *id, int rank) {
	rt_nccl_config mine = config; // NCCL may write to it
	*end = calloc(1, sizeof **end);
	return *end == NULL ? system_error : nccl.init(*end, size, *id, rank, &mine);
}

int rt_nccl_split(rt_nccl_end end, int color, int key, rt_nccl_end *made) {
	rt_nccl_config mine = config;
	*made = calloc(1, sizeof **made);
	return *made == NULL ? system_error : nccl.split(at_end(end), color, key, *made, &mine);
}

int rt_nccl_finalize(rt_nccl_end end) { return nccl.finalize(at_end(end)); }

int rt_nccl_destroy(rt_nccl_end end) {
	int r = nccl.destroy(at_end(end));
	free(end); // the communicator was ready, so NCCL no longer writes here
	return r;
}

// end is not freed, because NCCL's thread that joins the communicator may still write to it.
int rt_nccl_abort(rt_nccl_end end) {
	rt_nccl_comm comm = at_end(end);
	return comm == NULL ? success : nccl.abort(comm);
}

int rt_nccl_async_error(rt_nccl_end end, int *state) {
	rt_nccl_comm comm = at_end(end);
	*state = in_progress;
	return comm == NULL ? success : nccl.async_error(comm, state);
}

int rt_nccl_count(rt_nccl_end end, int *count) { return nccl.count(at_end(end), count); }
int rt_nccl_user_rank(rt_nccl_end end, int *rank) { return nccl.user_rank(at_end(end), rank); }
int rt_nccl_device(rt_nccl_end end, int *device) { return nccl.device(at_end(end), device); }

// The kinds of Command, in the order of types.go.
enum { all_reduce, reduce, broadcast, all_gather, reduce_scatter, send_to, recv_from };

static int call(rt_nccl_comm comm, void *stream, const rt_nccl_command *c) {
	const void *from = (const void *)c->send;
	void *to = (void *)c->recv;
	switch (c->kind) {
	case all_reduce: return nccl.all_reduce(from, to, c->count, c->type, c->op, comm, stream);
	case reduce: return nccl.reduce(from, to, c->count, c->type, c->op, c->peer, comm, stream);
	case broadcast: return nccl.broadcast(from, to, c->count, c->type, c->peer, comm, stream);
	case all_gather: return nccl.all_gather(from, to, c->count, c->type, comm, stream);
	case reduce_scatter: return nccl.reduce_scatter(from, to, c->count, c->type, c->op, comm, stream);
	case send_to: return nccl.send(from, c->count, c->type, c->peer, comm, stream);
	case recv_from: return nccl.recv(to, c->count, c->type, c->peer, comm, stream);
	}
	return invalid_argument;
}

static int failed(int result) { return result != success && result != in_progress; }

int rt_nccl_run(rt_nccl_end end, void *stream, const rt_nccl_command *commands, int count, int group, int *at) {
	rt_nccl_comm comm = at_end(end);
	*at = 0;
	int r = group ? nccl.group_start() : success;
	if (failed(r))
		return r;
	for (; *at < count && !failed(r); ++*at)
		r = call(comm, stream, &commands[*at]);
	int ended = group ? nccl.group_end() : r;
	if (failed(r)) {
		--*at;
		return r;
	}
	return ended;
}
