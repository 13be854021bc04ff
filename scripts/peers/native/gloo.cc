// Measures Gloo's ring allreduce over TCP on the loopback interface.
// Usage: gloo RANK RANKS STORE BYTES... where STORE is an empty directory, the same
// for all ranks, in which they find each other.
#include "method.h"

#include <cstdlib>
#include <exception>
#include <memory>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

namespace {

// Options are made once for each size, so that only the ring itself is timed. Three
// tags separate the operations.
struct Ring {
	std::shared_ptr<gloo::rendezvous::Context> context;
	std::unique_ptr<gloo::AllreduceOptions> options;
};

void prepare(void *self, float *data, size_t count) {
	auto ring = static_cast<Ring *>(self);
	ring->options = std::make_unique<gloo::AllreduceOptions>(ring->context);
	ring->options->setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
	ring->options->setOutput(data, count); // also the input, because no other is set
	ring->options->setReduceFunction(
	    static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
	ring->options->setTag(1);
}

void allreduce(void *self, float *, size_t) { gloo::allreduce(*static_cast<Ring *>(self)->options); }

void barrier(void *self) {
	gloo::BarrierOptions options(static_cast<Ring *>(self)->context);
	options.setTag(2);
	gloo::barrier(options);
}

void gather(void *self, double *mine, double *every, size_t count) {
	auto ring = static_cast<Ring *>(self);
	gloo::AllgatherOptions options(ring->context);
	options.setInput(mine, count);
	options.setOutput(every, count * ring->context->size);
	options.setTag(3);
	gloo::allgather(options);
}

void run(int rank, int ranks, const char *store, int sizes, char **size) {
	gloo::transport::tcp::attr attr;
	attr.iface = "lo";
	auto device = gloo::transport::tcp::CreateDevice(attr);
	gloo::rendezvous::FileStore files(store);
	Ring ring;
	ring.context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
	ring.context->connectFullMesh(files, device);
	library l = {"tcp", rank, ranks, &ring, prepare, allreduce, barrier, gather};
	measure(&l, sizes, size);
	barrier(&ring); // no rank leaves before the others have its last message
}

} // namespace

int main(int argc, char **argv) {
	if (argc < 5)
		fail("usage: gloo RANK RANKS STORE BYTES...");
	try {
		run(std::atoi(argv[1]), std::atoi(argv[2]), argv[3], argc - 4, argv + 4);
	} catch (const std::exception &e) {
		fail("gloo: %s", e.what());
	}
}
