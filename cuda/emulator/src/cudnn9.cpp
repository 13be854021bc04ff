// With cudnn.cpp, this file stands in for cuDNN 9.
#include "cudnn.h"

namespace dnn {

const int version = 90100;
const char* const parts[] = {"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9", nullptr};
const int NotInitialized = 1001, BadParam = 2000, InternalError = 4000, ExecutionFailed = 5000, NotSupported = 3000;

}  // namespace dnn
