#include <cuda.h>
#include <cupti.h>

#include "cuda/forward/library.hpp"

namespace {

const longhaul::cuda::Library& library() {
  static const longhaul::cuda::Library loaded{"libcupti.so." + std::to_string(CUDA_VERSION / 1000),
                                              "trace no tasks"};
  return loaded;
}

}  // namespace

#define FORWARD(name)                                                 \
  [] {                                                                \
    static auto* const found = library().find<decltype(name)>(#name); \
    return found;                                                     \
  }()

extern "C" {

CUptiResult cuptiGetResultString(CUptiResult result, const char** str) {
  return FORWARD(cuptiGetResultString)(result, str);
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                                           CUpti_BuffersCallbackCompleteFunc funcBufferCompleted) {
  // What is called from inside CUPTI may not throw: look for it now.
  static_cast<void>(
      library().find<decltype(cuptiActivityGetNextRecord)>("cuptiActivityGetNextRecord"));
  static_cast<void>(library().find<decltype(cuptiActivityGetNumDroppedRecords)>(
      "cuptiActivityGetNumDroppedRecords"));
  return FORWARD(cuptiActivityRegisterCallbacks)(funcBufferRequested, funcBufferCompleted);
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  return FORWARD(cuptiActivityEnable)(kind);
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  return FORWARD(cuptiActivityDisable)(kind);
}
CUptiResult cuptiActivityFlushAll(uint32_t flag) { return FORWARD(cuptiActivityFlushAll)(flag); }
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                       CUpti_Activity** record) {
  return FORWARD(cuptiActivityGetNextRecord)(buffer, validBufferSizeBytes, record);
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId,
                                              size_t* dropped) {
  return FORWARD(cuptiActivityGetNumDroppedRecords)(context, streamId, dropped);
}
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   uint64_t id) {
  return FORWARD(cuptiActivityPushExternalCorrelationId)(kind, id);
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t* lastId) {
  return FORWARD(cuptiActivityPopExternalCorrelationId)(kind, lastId);
}

}  // extern "C"
