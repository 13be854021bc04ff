// The differences between the emulated versions of cuDNN.
#pragma once

namespace dnn {

extern const int version;          // in the numbering of cudnnGetVersion
extern const char* const parts[];  // libraries that cuDNN opens by name, then nullptr

// Statuses whose values differ.
extern const int NotInitialized, BadParam, InternalError, ExecutionFailed, NotSupported;

}  // namespace dnn
