// Measures an operation of Gloo over TCP on the loopback interface; allreduce by a ring.
// Usage: gloo OPERATION RANK RANKS STORE BYTES... where STORE is an empty directory, the
// same for all ranks, in which they find each other.
#include "method.h"

#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

namespace {

// Options are made once for each size, so that only the operation itself is timed. Three
// tags separate operations, barriers and gathers.
template <typename Options> struct Prepared {
	std::shared_ptr<gloo::rendezvous::Context> context;
	std::unique_ptr<Options> options;

	Options &make() {
		options = std::make_unique<Options>(context);
		options->setTag(1);
		return *options;
	}
};

using Allreduce = Prepared<gloo::AllreduceOptions>;
using Allgather = Prepared<gloo::AllgatherOptions>;
using Broadcast = Prepared<gloo::BroadcastOptions>;
using Alltoall = Prepared<gloo::AlltoallOptions>;
using Reduce = Prepared<gloo::ReduceOptions>;
using Gather = Prepared<gloo::GatherOptions>;
using Scatter = Prepared<gloo::ScatterOptions>;

using Fold = void (*)(void *, const void *, const void *, size_t);

// An output is also the input, or has it, where no other is set.
void set(Allreduce *p, float *result, float *, size_t count) {
	auto &options = p->make();
	options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
	options.setOutput(result, count);
	options.setReduceFunction(static_cast<Fold>(&gloo::sum<float>));
}

void set(Allgather *p, float *result, float *, size_t count) { p->make().setOutput(result, count * p->context->size); }

void set(Broadcast *p, float *result, float *, size_t count) {
	auto &options = p->make();
	options.setRoot(0);
	options.setOutput(result, count);
}

void set(Alltoall *p, float *result, float *input, size_t count) {
	auto &options = p->make();
	options.setInput(input, count * p->context->size);
	options.setOutput(result, count * p->context->size);
}

void set(Reduce *p, float *result, float *, size_t count) {
	auto &options = p->make();
	options.setRoot(0);
	options.setOutput(result, count);
	options.setReduceFunction(static_cast<Fold>(&gloo::sum<float>));
}

void set(Gather *p, float *result, float *input, size_t count) {
	auto &options = p->make();
	options.setRoot(0);
	options.setInput(input, count);
	if (p->context->rank == 0)
		options.setOutput(result, count * p->context->size);
}

void set(Scatter *p, float *result, float *input, size_t count) {
	auto &options = p->make();
	options.setRoot(0);
	options.setOutput(result, count);
	if (p->context->rank != 0)
		return;
	std::vector<float *> parts;
	for (int r = 0; r < p->context->size; r++)
		parts.push_back(input + r * count);
	options.setInputs(parts, count);
}

void call(Allreduce *p) { gloo::allreduce(*p->options); }
void call(Allgather *p) { gloo::allgather(*p->options); }
void call(Broadcast *p) { gloo::broadcast(*p->options); }
void call(Alltoall *p) { gloo::alltoall(*p->options); }
void call(Reduce *p) { gloo::reduce(*p->options); }
void call(Gather *p) { gloo::gather(*p->options); }
void call(Scatter *p) { gloo::scatter(*p->options); }

void barrier(const std::shared_ptr<gloo::rendezvous::Context> &context) {
	gloo::BarrierOptions options(context);
	options.setTag(2);
	gloo::barrier(options);
}

void gather(const std::shared_ptr<gloo::rendezvous::Context> &context, double *mine, double *every, size_t count) {
	gloo::AllgatherOptions options(context);
	options.setInput(mine, count);
	options.setOutput(every, count * context->size);
	options.setTag(3);
	gloo::allgather(options);
}

template <typename Operation> void run(const char *name, int rank, int ranks, const char *store, int sizes, char **size) {
	gloo::transport::tcp::attr attr;
	attr.iface = "lo";
	auto device = gloo::transport::tcp::CreateDevice(attr);
	gloo::rendezvous::FileStore files(store);
	Operation self;
	self.context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
	self.context->connectFullMesh(files, device);
	static const auto as = [](void *p) { return static_cast<Operation *>(p); };
	library l = {"tcp",
	    rank,
	    ranks,
	    &self,
	    [](void *p, float *result, float *input, size_t count) { set(as(p), result, input, count); },
	    [](void *p, float *, float *, size_t) { call(as(p)); },
	    [](void *p) { barrier(as(p)->context); },
	    [](void *p, double *mine, double *every, size_t count) { gather(as(p)->context, mine, every, count); }};
	measure(&l, name, sizes, size);
	barrier(self.context); // no rank leaves before the others have its last message
}

} // namespace

int main(int argc, char **argv) {
	if (argc < 6)
		fail("usage: gloo OPERATION RANK RANKS STORE BYTES...");
	const std::string name = argv[1];
	auto measured = name == "allreduce" ? run<Allreduce>
	    : name == "allgather"           ? run<Allgather>
	    : name == "broadcast"           ? run<Broadcast>
	    : name == "alltoall"            ? run<Alltoall>
	    : name == "reduce"              ? run<Reduce>
	    : name == "gather"              ? run<Gather>
	    : name == "scatter"             ? run<Scatter>
	                                    : nullptr;
	if (!measured)
		fail("gloo: %s is not an operation of this program", argv[1]);
	try {
		measured(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argv[4], argc - 5, argv + 5);
	} catch (const std::exception &e) {
		fail("gloo: %s", e.what());
	}
}
