// With cudnn.cpp, this file stands in for cuDNN 8.
#include "cudnn.h"

namespace dnn {

const int version = 8907;
const char* const parts[] = {"libcudnn_ops_infer.so.8", "libcudnn_cnn_infer.so.8", "libcudnn_ops_train.so.8", "libcudnn_cnn_train.so.8", nullptr};
const int NotInitialized = 1, BadParam = 3, InternalError = 4, ExecutionFailed = 8, NotSupported = 9;

}  // namespace dnn

// A function that version 9 does not have.
extern "C" __attribute__((visibility("default"))) int cudnnCnnInferVersionCheck() { return 0; }
