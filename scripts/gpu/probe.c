// Measures CUDA's libraries without ringtrain: start, compiling, launches, graphs, copies, and
// the matrix products of a small network with cuBLASLt. gpu-check.sh compiles it, and visit
// runs it. It needs no CUDA headers, because it declares what it uses. It opens the libraries
// that RINGTRAIN_CUDA_LIB, RINGTRAIN_NVRTC_LIB and RINGTRAIN_CUBLASLT_LIB name. It writes
// Markdown. If a part fails, the next parts still run, and the exit code is 1. PROBE_QUICK
// reduces the number of products.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void *handle;
typedef unsigned long long address;

#define DRIVER(X) \
	X(Init, (unsigned)) \
	X(DriverGetVersion, (int *)) \
	X(GetErrorName, (int, const char **)) \
	X(DeviceGet, (int *, int)) \
	X(DevicePrimaryCtxRetain, (handle *, int)) \
	X(CtxSetCurrent, (handle)) \
	X(StreamCreate, (handle *, unsigned)) \
	X(StreamSynchronize, (handle)) \
	X(EventCreate, (handle *, unsigned)) \
	X(EventRecord, (handle, handle)) \
	X(EventSynchronize, (handle)) \
	X(EventElapsedTime, (float *, handle, handle)) \
	X(ModuleLoadData, (handle *, const void *)) \
	X(ModuleGetFunction, (handle *, handle, const char *)) \
	X(LaunchKernel, (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **)) \
	X(GraphInstantiateWithFlags, (handle *, handle, unsigned long long)) \
	X(GraphUpload, (handle, handle)) \
	X(GraphLaunch, (handle, handle)) \
	X(GraphExecDestroy, (handle)) \
	X(GraphDestroy, (handle)) \
	X(StreamEndCapture, (handle, handle *)) \
	X(MemHostAlloc, (void **, size_t, unsigned))

#define DRIVER_V2(X) \
	X(DevicePrimaryCtxRelease, (int)) \
	X(StreamBeginCapture, (handle, int)) \
	X(MemAlloc, (address *, size_t)) \
	X(MemsetD8, (address, unsigned char, size_t)) \
	X(MemcpyHtoDAsync, (address, const void *, size_t, handle)) \
	X(MemcpyDtoHAsync, (void *, address, size_t, handle))

#define DECLARE(name, arguments) static int(*cu##name) arguments;
DRIVER(DECLARE)
DRIVER_V2(DECLARE)

static int failures;

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static const char *name_of(int r) {
	const char *name = NULL;
	if (cuGetErrorName == NULL || cuGetErrorName(r, &name) != 0 || name == NULL)
		return "unknown error";
	return name;
}

// TRY returns 1 from the function if a call of the driver fails.
#define TRY(call) \
	do { \
		int r_ = (call); \
		if (r_ != 0) { \
			printf("\nnot measured: %s: %s (%d)\n", #call, name_of(r_), r_); \
			failures++; \
			return 1; \
		} \
	} while (0)

// LT is TRY for cuBLASLt and NVRTC, which have their own error codes.
#define LT(call) \
	do { \
		int r_ = (call); \
		if (r_ != 0) { \
			printf("\nnot measured: %s: status %d\n", #call, r_); \
			failures++; \
			return 1; \
		} \
	} while (0)

static handle library(const char *variable, const char *otherwise) {
	const char *path = getenv(variable);
	if (path == NULL || *path == 0)
		path = otherwise;
	double begin = now();
	handle h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (h == NULL) {
		printf("\nnot measured: %s\n", dlerror());
		failures++;
	} else {
		printf("| load %s | %.1f ms |\n", path, (now() - begin) * 1e3);
	}
	return h;
}

static handle stream, ready, finished, empty;

static int device_time(float *ms) {
	TRY(cuEventSynchronize(finished));
	TRY(cuEventElapsedTime(ms, ready, finished));
	return 0;
}

static int start(void) {
	printf("## Start\n\n| what | time |\n|---|---|\n");
	handle h = library("RINGTRAIN_CUDA_LIB", "libcuda.so.1");
	if (h == NULL)
		return 1;
#define FIND(name, arguments) \
	if ((*(void **)&cu##name = dlsym(h, "cu" #name)) == NULL) { \
		printf("\nnot measured: libcuda has no cu" #name "\n"); \
		failures++; \
		return 1; \
	}
#define FIND_V2(name, arguments) \
	if ((*(void **)&cu##name = dlsym(h, "cu" #name "_v2")) == NULL) { \
		printf("\nnot measured: libcuda has no cu" #name "_v2\n"); \
		failures++; \
		return 1; \
	}
	DRIVER(FIND)
	DRIVER_V2(FIND_V2)
	double begin = now();
	TRY(cuInit(0));
	printf("| cuInit | %.1f ms |\n", (now() - begin) * 1e3);
	int device;
	handle context;
	TRY(cuDeviceGet(&device, 0));
	begin = now();
	TRY(cuDevicePrimaryCtxRetain(&context, device));
	TRY(cuCtxSetCurrent(context));
	printf("| primary context | %.1f ms |\n", (now() - begin) * 1e3);
	begin = now();
	TRY(cuStreamCreate(&stream, 1));
	printf("| stream | %.3f ms |\n", (now() - begin) * 1e3);
	TRY(cuEventCreate(&ready, 0));
	TRY(cuEventCreate(&finished, 0));
	return 0;
}

static const char source[] =
	"extern \"C\" __global__ void empty() {}\n"
	"extern \"C\" __global__ void add(float *y, const float *x, unsigned n) {\n"
	"\tfor (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += x[i];\n"
	"}\n";

static int compile(const char *arch) {
	printf("\n## Compiling two small kernels with NVRTC\n\n| what | time |\n|---|---|\n");
	handle h = library("RINGTRAIN_NVRTC_LIB", "libnvrtc.so");
	if (h == NULL)
		return 1;
	int (*create)(handle *, const char *, const char *, int, const char *const *, const char *const *) = dlsym(h, "nvrtcCreateProgram");
	int (*run)(handle, int, const char *const *) = dlsym(h, "nvrtcCompileProgram");
	int (*sizes[])(handle, size_t *) = {dlsym(h, "nvrtcGetCUBINSize"), dlsym(h, "nvrtcGetPTXSize")};
	int (*gets[])(handle, char *) = {dlsym(h, "nvrtcGetCUBIN"), dlsym(h, "nvrtcGetPTX")};
	if (create == NULL || run == NULL || sizes[0] == NULL || sizes[1] == NULL || gets[0] == NULL || gets[1] == NULL) {
		printf("\nnot measured: this NVRTC lacks a function\n");
		failures++;
		return 1;
	}
	for (int ptx = 1; ptx >= 0; ptx--) {
		char option[64];
		snprintf(option, sizeof option, "--gpu-architecture=%s_%s", ptx ? "compute" : "sm", arch);
		const char *options[] = {option, "--std=c++17"};
		handle program, module;
		size_t size;
		double begin = now();
		LT(create(&program, source, "probe.cu", 0, NULL, NULL));
		LT(run(program, 2, options));
		LT(sizes[ptx](program, &size));
		char *image = calloc(size + 1, 1);
		LT(gets[ptx](program, image));
		printf("| to %s, %zu bytes | %.1f ms |\n", ptx ? "PTX" : "a cubin", size, (now() - begin) * 1e3);
		begin = now();
		TRY(cuModuleLoadData(&module, image));
		printf("| load the %s%s | %.2f ms |\n", ptx ? "PTX" : "cubin", ptx ? " (the driver's compiler, or its cache)" : "", (now() - begin) * 1e3);
		TRY(cuModuleGetFunction(&empty, module, "empty"));
		free(image);
	}
	return 0;
}

static int launches(void) {
	enum { count = 10000 };
	printf("\n## Launching kernels that do nothing\n\n| what | per kernel |\n|---|---|\n");
	if (empty == NULL) {
		printf("\nnot measured: the kernel was not compiled\n");
		return 1;
	}
	double called = 0, done = 0;
	for (int round = 0; round < 3; round++) { // only the last counts
		TRY(cuStreamSynchronize(stream));
		double begin = now();
		for (int i = 0; i < count; i++)
			TRY(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
		called = now() - begin;
		TRY(cuStreamSynchronize(stream));
		done = now() - begin;
	}
	printf("| cuLaunchKernel, the call | %.2f us |\n| until all are done | %.2f us |\n", called / count * 1e6, done / count * 1e6);
	double single = 0;
	for (int i = 0; i < 200; i++) {
		double begin = now();
		TRY(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
		TRY(cuStreamSynchronize(stream));
		double took = now() - begin;
		if (i == 0 || took < single)
			single = took;
	}
	printf("| one launch and a wait, the least of 200 | %.2f us |\n", single * 1e6);
	return 0;
}

static int graphs(void) {
	enum { runs = 200 };
	static const int sizes[] = {1, 10, 100, 1000};
	printf("\n## Graphs of kernels that do nothing, in sequence\n\n"
		"| kernels | instantiate | the call of a launch | a launch until done, launched back to back | per kernel |\n|---|---|---|---|---|\n");
	if (empty == NULL) {
		printf("\nnot measured: the kernel was not compiled\n");
		return 1;
	}
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		handle graph, exec;
		TRY(cuStreamBeginCapture(stream, 1));
		for (int i = 0; i < sizes[k]; i++)
			TRY(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
		TRY(cuStreamEndCapture(stream, &graph));
		double begin = now();
		TRY(cuGraphInstantiateWithFlags(&exec, graph, 0));
		double instantiate = now() - begin, called = 0, done = 0;
		TRY(cuGraphUpload(exec, stream));
		for (int round = 0; round < 3; round++) {
			TRY(cuStreamSynchronize(stream));
			begin = now();
			for (int i = 0; i < runs; i++)
				TRY(cuGraphLaunch(exec, stream));
			called = now() - begin;
			TRY(cuStreamSynchronize(stream));
			done = now() - begin;
		}
		printf("| %d | %.3f ms | %.2f us | %.2f us | %.3f us |\n", sizes[k], instantiate * 1e3, called / runs * 1e6, done / runs * 1e6, done / runs / sizes[k] * 1e6);
		TRY(cuGraphExecDestroy(exec));
		TRY(cuGraphDestroy(graph));
	}
	return 0;
}

static int copies(void) {
	static const size_t sizes[] = {4, 4096, 401408, 4 << 20, 64 << 20};
	printf("\n## Copies between pinned memory and the device, with a wait\n\n| bytes | to the device | back |\n|---|---|---|\n");
	void *host;
	address device;
	TRY(cuMemHostAlloc(&host, 64 << 20, 1));
	TRY(cuMemAlloc(&device, 64 << 20));
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		double least[2] = {1e9, 1e9};
		for (int i = 0; i < 20; i++) {
			for (int back = 0; back < 2; back++) {
				double begin = now();
				if (back)
					TRY(cuMemcpyDtoHAsync(host, device, sizes[k], stream));
				else
					TRY(cuMemcpyHtoDAsync(device, host, sizes[k], stream));
				TRY(cuStreamSynchronize(stream));
				double took = now() - begin;
				if (took < least[back])
					least[back] = took;
			}
		}
		printf("| %zu | %.2f us | %.2f us |\n", sizes[k], least[0] * 1e6, least[1] * 1e6);
	}
	return 0;
}

// cuBLASLt's functions. Its constants are the same in versions 11, 12 and 13.
typedef struct {
	uint64_t algo[8];
	size_t workspace;
	int status;
	float waves;
	int reserved[4];
} candidate;

static struct {
	int (*Create)(handle *);
	int (*MatmulDescCreate)(handle *, int, int);
	int (*MatmulDescDestroy)(handle);
	int (*MatmulDescSetAttribute)(handle, int, const void *, size_t);
	int (*MatrixLayoutCreate)(handle *, int, uint64_t, uint64_t, int64_t);
	int (*MatrixLayoutDestroy)(handle);
	int (*MatmulPreferenceCreate)(handle *);
	int (*MatmulPreferenceSetAttribute)(handle, int, const void *, size_t);
	int (*MatmulAlgoGetHeuristic)(handle, handle, handle, handle, handle, handle, handle, int, candidate *, int *);
	int (*Matmul)(handle, handle, const void *, address, handle, address, handle, const void *, address, handle, address, handle, const void *, address, size_t, handle);
} lt;

static handle blas, preference;
static address memory; // for matrices, workspace, bias and mask
enum { most = 8, workspace = 32 << 20, matrix = 256 << 20 };

// A product m x n x k of column-major matrices. The epilogue is cuBLASLt's constant.
typedef struct {
	const char *what;
	int m, n, k, trans_a, trans_b;
	uint32_t epilogue;
} product;

typedef struct {
	const char *name;
	int compute, type;
} precision;

static const precision precisions[] = {{"fp32", 68, 0}, {"TF32", 77, 0}, {"bf16", 68, 14}};

static int multiply(handle desc, handle *layouts, const candidate *c) {
	float one = 1, zero = 0;
	address a = memory, b = a + matrix, d = b + matrix, space = d + matrix;
	return lt.Matmul(blas, desc, &one, a, layouts[0], b, layouts[1], &zero, d, layouts[2], d, layouts[2], c->algo, space, workspace, stream);
}

// replay times a graph of products with one candidate. *us is the microseconds per product, or
// 0 if the candidate does not work. The candidate runs once before the capture, because
// cuBLASLt loads a kernel on its first use, which a capture may forbid.
static int replay(handle desc, handle *layouts, const candidate *c, int count, float *us) {
	handle graph, exec;
	*us = 0;
	if (c->status != 0 || multiply(desc, layouts, c) != 0)
		return 0;
	TRY(cuStreamSynchronize(stream));
	TRY(cuStreamBeginCapture(stream, 1));
	int status = 0;
	for (int i = 0; i < count && status == 0; i++)
		status = multiply(desc, layouts, c);
	TRY(cuStreamEndCapture(stream, &graph));
	LT(status);
	TRY(cuGraphInstantiateWithFlags(&exec, graph, 0));
	*us = 1e9f;
	for (int round = 0; round < 4; round++) {
		float ms;
		TRY(cuEventRecord(ready, stream));
		TRY(cuGraphLaunch(exec, stream));
		TRY(cuEventRecord(finished, stream));
		if (device_time(&ms) != 0)
			return 1;
		if (round > 0 && ms * 1e3f / count < *us)
			*us = ms * 1e3f / count;
	}
	TRY(cuGraphExecDestroy(exec));
	TRY(cuGraphDestroy(graph));
	return 0;
}

// measure times every candidate of cuBLASLt for a product.
static int measure(const product *p, const precision *how, int repeats, int *count, int *best, float *least, float *first) {
	handle desc, layouts[3];
	candidate found[most];
	*count = 0;
	*best = 0;
	*least = 1e9f;
	LT(lt.MatmulDescCreate(&desc, how->compute, 0));
	LT(lt.MatmulDescSetAttribute(desc, 3, &p->trans_a, 4));
	LT(lt.MatmulDescSetAttribute(desc, 4, &p->trans_b, 4));
	address bias = memory + 3 * (address)matrix + workspace, mask = bias + (1 << 20);
	int64_t width = (p->m + 127) / 128 * 128;
	int refused = lt.MatmulDescSetAttribute(desc, 7, &p->epilogue, 4);
	if (p->epilogue != 1 && p->epilogue != 136)
		LT(lt.MatmulDescSetAttribute(desc, 8, &bias, 8));
	if (p->epilogue == 134 || p->epilogue == 136) {
		LT(lt.MatmulDescSetAttribute(desc, 11, &mask, 8));
		LT(lt.MatmulDescSetAttribute(desc, 12, &width, 8));
	}
	LT(lt.MatrixLayoutCreate(&layouts[0], how->type, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->trans_a ? p->k : p->m));
	LT(lt.MatrixLayoutCreate(&layouts[1], how->type, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->trans_b ? p->n : p->k));
	LT(lt.MatrixLayoutCreate(&layouts[2], how->type, p->m, p->n, p->m));
	int status = refused ? refused : lt.MatmulAlgoGetHeuristic(blas, desc, layouts[0], layouts[1], layouts[2], layouts[2], preference, most, found, count);
	if (status != 0) // such as 15, not supported
		*count = 0;
	for (int i = 0; i < *count; i++) {
		float us;
		if (replay(desc, layouts, &found[i], repeats, &us) != 0)
			return 1;
		if (i == 0)
			*first = us;
		if (us > 0 && us < *least) {
			*least = us;
			*best = i;
		}
	}
	for (int i = 0; i < 3; i++)
		LT(lt.MatrixLayoutDestroy(layouts[i]));
	LT(lt.MatmulDescDestroy(desc));
	return 0;
}

// randomize fills the factors with numbers between -1 and 1, because products of zeros are
// faster. A word is two numbers in bf16, and one in float32.
static int randomize(void) {
	enum { bytes = 64 << 20 }; // of a float32 matrix of 4096 x 4096
	uint32_t *host, seed = 1;
	TRY(cuMemHostAlloc((void **)&host, bytes, 1));
	for (size_t i = 0; i < bytes / 4; i++) {
		uint32_t word = 0;
		for (int half = 0; half < 2; half++) {
			seed = seed * 1664525 + 1013904223;
			uint32_t exponent = 119 + (seed >> 29); // 2^-8 to 2^-1
			word = word << 16 | (seed >> 13 & 0x8000) | exponent << 7 | (seed >> 20 & 0x7f);
		}
		host[i] = word;
	}
	TRY(cuMemcpyHtoDAsync(memory, host, bytes, stream));
	TRY(cuMemcpyHtoDAsync(memory + matrix, host, bytes, stream));
	TRY(cuStreamSynchronize(stream));
	return 0;
}

static int products(void) {
	printf("\n## Products with cuBLASLt\n\n| what | time |\n|---|---|\n");
	handle h = library("RINGTRAIN_CUBLASLT_LIB", "libcublasLt.so");
	if (h == NULL)
		return 1;
	static const char *const names[] = {"Create", "MatmulDescCreate", "MatmulDescDestroy", "MatmulDescSetAttribute", "MatrixLayoutCreate",
		"MatrixLayoutDestroy", "MatmulPreferenceCreate", "MatmulPreferenceSetAttribute", "MatmulAlgoGetHeuristic", "Matmul"};
	_Static_assert(sizeof names == sizeof lt, "a name for each function");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char name[64];
		snprintf(name, sizeof name, "cublasLt%s", names[i]);
		if ((((void **)&lt)[i] = dlsym(h, name)) == NULL) {
			printf("\nnot measured: cuBLASLt has no %s\n", name);
			failures++;
			return 1;
		}
	}
	double begin = now();
	LT(lt.Create(&blas));
	printf("| cublasLtCreate | %.1f ms |\n", (now() - begin) * 1e3);
	size_t space = workspace, all = 3 * (size_t)matrix + workspace + (64 << 20);
	LT(lt.MatmulPreferenceCreate(&preference));
	LT(lt.MatmulPreferenceSetAttribute(preference, 1, &space, sizeof space));
	TRY(cuMemAlloc(&memory, all));
	TRY(cuMemsetD8(memory, 0, all));
	if (randomize() != 0)
		return 1;

	// The network 784-128-128-10 with a batch of 128: forward, gradient of the input,
	// gradient of the weights. Our rows are cuBLASLt's columns.
	static const product mlp[] = {
		{"forward 1, bias + ReLU + mask", 128, 128, 784, 1, 0, 134},
		{"forward 2, bias + ReLU + mask", 128, 128, 128, 1, 0, 134},
		{"forward 3, bias", 10, 128, 128, 1, 0, 4},
		{"input 3, ReLU's gradient", 128, 128, 10, 0, 0, 136},
		{"input 2, ReLU's gradient", 128, 128, 128, 0, 0, 136},
		{"input 1", 784, 128, 128, 0, 0, 1},
		{"weights 3, bias' gradient", 128, 10, 128, 0, 1, 512},
		{"weights 2, bias' gradient", 128, 128, 128, 0, 1, 512},
		{"weights 1, bias' gradient", 784, 128, 128, 0, 1, 512},
	};
	printf("\nTimes are per product, in a graph of 50 in sequence. \"First\" is cuBLASLt's own first choice.\n\n"
		"| product | m, n, k | numbers | candidates | first | best | best without epilogue |\n|---|---|---|---|---|---|---|\n");
	int quick = getenv("PROBE_QUICK") != NULL, repeats = quick ? 2 : 50;
	for (size_t i = 0; i < (quick ? 2 : sizeof mlp / sizeof *mlp); i++)
		for (size_t j = 0; j < 3; j++) {
			int count, best, plain_count, plain_best;
			float least, first = 0, plain, plain_first;
			product bare = mlp[i];
			bare.epilogue = 1;
			if (measure(&mlp[i], &precisions[j], repeats, &count, &best, &least, &first) != 0 ||
				measure(&bare, &precisions[j], repeats, &plain_count, &plain_best, &plain, &plain_first) != 0)
				return 1;
			printf("| %s | %d, %d, %d | %s | %d |", mlp[i].what, mlp[i].m, mlp[i].n, mlp[i].k, precisions[j].name, count);
			if (count > 0)
				printf(" %.2f us | %.2f us (%d) |", first, least, best);
			else
				printf(" none | none |");
			printf(" %.2f us |\n", plain);
		}
	if (quick)
		return 0;
	printf("\n| product | numbers | best | TFLOP/s |\n|---|---|---|---|\n");
	for (size_t j = 0; j < 3; j++) {
		static const product square = {"4096", 4096, 4096, 4096, 1, 0, 1};
		int count, best;
		float least, first;
		if (measure(&square, &precisions[j], 10, &count, &best, &least, &first) != 0)
			return 1;
		printf("| 4096 x 4096 x 4096 | %s | %.1f us (%d) | %.1f |\n", precisions[j].name, least, best, 2 * 4096. * 4096 * 4096 / least / 1e6);
	}
	return 0;
}

int main(int argc, char **argv) {
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (start() != 0)
		return 1;
	compile(argc > 1 ? argv[1] : "90");
	launches();
	graphs();
	copies();
	products();
	return failures > 0;
}
