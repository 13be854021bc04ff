// The differences between the versions of cuDNN that cudnn.cpp stands in for.
#pragma once

namespace dnn {

extern const int version;          // as cudnnGetVersion counts
extern const char* const parts[];  // the libraries that it opens by name, then nullptr

// Numbers of statuses that differ.
extern const int NotInitialized, BadParam, InternalError, ExecutionFailed, NotSupported;

}  // namespace dnn
