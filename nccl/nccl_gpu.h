//go:build gpu && cgo && linux

#ifndef RINGTRAIN_NCCL_H
#define RINGTRAIN_NCCL_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
	char internal[128];
} rt_nccl_id;

typedef void *rt_nccl_comm;

// ncclConfig_t of NCCL 2.14. A newer library copies size bytes and uses defaults for all
// fields that are newer than version. So version must be that of this layout, not that of
// the library.
typedef struct {
	size_t size;
	unsigned magic;
	unsigned version;
	int blocking;
	int pad; // later layouts have fields here
} rt_nccl_config;

// A call of a function that moves data, with the layout of Command in types.go.
typedef struct {
	int32_t kind, type, op, peer;
	uintptr_t send, recv;
	uint64_t count;
} rt_nccl_command;

// The functions of NCCL that we call, in the order of functions in library.go.
typedef struct {
	int (*version)(int *);
	int (*unique_id)(rt_nccl_id *);
	const char *(*error_string)(int);
	int (*init)(rt_nccl_comm *, int size, rt_nccl_id, int rank, rt_nccl_config *);
	int (*finalize)(rt_nccl_comm);
	int (*destroy)(rt_nccl_comm);
	int (*abort)(rt_nccl_comm);
	int (*async_error)(rt_nccl_comm, int *);
	int (*count)(rt_nccl_comm, int *);
	int (*user_rank)(rt_nccl_comm, int *);
	int (*device)(rt_nccl_comm, int *);
	int (*all_reduce)(const void *, void *, size_t, int type, int op, rt_nccl_comm, void *stream);
	int (*reduce)(const void *, void *, size_t, int type, int op, int root, rt_nccl_comm, void *stream);
	int (*broadcast)(const void *, void *, size_t, int type, int root, rt_nccl_comm, void *stream);
	int (*all_gather)(const void *, void *, size_t, int type, rt_nccl_comm, void *stream);
	int (*reduce_scatter)(const void *, void *, size_t, int type, int op, rt_nccl_comm, void *stream);
	int (*send)(const void *, size_t, int type, int peer, rt_nccl_comm, void *stream);
	int (*recv)(void *, size_t, int type, int peer, rt_nccl_comm, void *stream);
	int (*group_start)(void);
	int (*group_end)(void);
	const char *(*last_error)(rt_nccl_comm);
	int (*split)(rt_nccl_comm, int color, int key, rt_nccl_comm *, rt_nccl_config *);
} rt_nccl;

// rt_nccl_bind stores the addresses of the functions.
void rt_nccl_bind(const uintptr_t *addresses);

int rt_nccl_version(int *version);
int rt_nccl_unique_id(rt_nccl_id *id);
const char *rt_nccl_error_string(int result);

// An end is the memory to which NCCL writes a new communicator. NCCL's own thread may write
// there after the call has returned, so the memory must remain valid.
typedef rt_nccl_comm *rt_nccl_end;

// rt_nccl_init takes a pointer to the ID, because Go cannot pass it by value as NCCL wants it.
// *end is NULL only if there is no memory for it.
int rt_nccl_init(rt_nccl_end *end, int size, const rt_nccl_id *id, int rank);
int rt_nccl_split(rt_nccl_end end, int color, int key, rt_nccl_end *made);

const char *rt_nccl_last_error(rt_nccl_end end); // may be NULL, as may end
int rt_nccl_finalize(rt_nccl_end end);
int rt_nccl_destroy(rt_nccl_end end);
int rt_nccl_abort(rt_nccl_end end);
int rt_nccl_async_error(rt_nccl_end end, int *state); // in progress until NCCL has written there
int rt_nccl_count(rt_nccl_end end, int *count);
int rt_nccl_user_rank(rt_nccl_end end, int *rank);
int rt_nccl_device(rt_nccl_end end, int *device);

// rt_nccl_run makes count calls, as one group if group is set. After a failure *at is the
// index of the call that failed, or count for the end of the group. A group belongs to the
// thread, so this function starts and ends it, even if a call fails.
int rt_nccl_run(rt_nccl_end end, void *stream, const rt_nccl_command *commands, int count, int group, int *at);

#endif
