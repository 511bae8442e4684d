#include "cuda_runtime_api.h"

namespace {

struct ErrorText {
  cudaError_t code;
  const char *name, *text;
};

#define NAMED(code, text) \
  { code, #code, text }
constexpr ErrorText kErrors[] = {
    NAMED(cudaSuccess, "no error"),
    NAMED(cudaErrorInvalidValue, "invalid argument"),
    NAMED(cudaErrorMemoryAllocation, "out of memory"),
    NAMED(cudaErrorInitializationError, "initialization error"),
    NAMED(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    NAMED(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    NAMED(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    NAMED(cudaErrorInsufficientDriver,
          "CUDA driver version is insufficient for CUDA runtime version"),
    NAMED(cudaErrorInvalidDeviceFunction, "invalid device function"),
    NAMED(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    NAMED(cudaErrorInvalidDevice, "invalid device ordinal"),
    NAMED(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    NAMED(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    NAMED(cudaErrorNotReady, "device not ready"),
    NAMED(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    NAMED(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    NAMED(cudaErrorAssert, "device-side assert triggered"),
    NAMED(cudaErrorHostMemoryAlreadyRegistered,
          "part or all of the requested memory range is already mapped"),
    NAMED(cudaErrorHostMemoryNotRegistered,
          "pointer does not correspond to a registered memory region"),
    NAMED(cudaErrorLaunchFailure, "unspecified launch failure"),
    NAMED(cudaErrorNotPermitted, "operation not permitted"),
    NAMED(cudaErrorNotSupported, "operation not supported"),
    NAMED(cudaErrorUnknown, "unknown error"),
};
#undef NAMED

const ErrorText* find(cudaError_t code) {
  for (const ErrorText& error : kErrors)
    if (error.code == code) return &error;
  return nullptr;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t code) {
  const auto* const known = find(code);
  return known == nullptr ? "unrecognized error code" : known->name;
}

const char* cudaGetErrorString(cudaError_t code) {
  const auto* const known = find(code);
  return known == nullptr ? "unrecognized error code" : known->text;
}
