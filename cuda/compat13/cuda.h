// The driver's header, with five functions as they were before CUDA 13. gorgonia.org/cu
// calls them by names that CUDA 13 gives to functions with other arguments. The driver
// has both. With an older toolkit this changes nothing. scripts/cuda-headers.sh --env puts
// this directory before the toolkit's.
#ifndef RINGTRAIN_COMPAT13_CUDA_H
#define RINGTRAIN_COMPAT13_CUDA_H

#include_next <cuda.h>

#if CUDA_VERSION >= 13000

#undef cuCtxCreate
#define cuCtxCreate cuCtxCreate_v2
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

#undef cuMemAdvise
CUresult CUDAAPI cuMemAdvise(CUdeviceptr p, size_t count, CUmem_advise advice, CUdevice device);

#undef cuMemPrefetchAsync
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr p, size_t count, CUdevice device, CUstream stream);

#undef cuGraphAddDependencies
CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);

#undef cuGraphGetEdges
CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);

#endif

#endif
