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

extern "C" {

CUptiResult cuptiGetResultString(CUptiResult result, const char** str) {
  return LONGHAUL_FORWARD(cuptiGetResultString)(result, str);
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                                           CUpti_BuffersCallbackCompleteFunc funcBufferCompleted) {
  // What is called from inside CUPTI may not throw: look for it now.
  static_cast<void>(
      library().find<decltype(cuptiActivityGetNextRecord)>("cuptiActivityGetNextRecord"));
  static_cast<void>(library().find<decltype(cuptiActivityGetNumDroppedRecords)>(
      "cuptiActivityGetNumDroppedRecords"));
  return LONGHAUL_FORWARD(cuptiActivityRegisterCallbacks)(funcBufferRequested, funcBufferCompleted);
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  return LONGHAUL_FORWARD(cuptiActivityEnable)(kind);
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  return LONGHAUL_FORWARD(cuptiActivityDisable)(kind);
}
CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  return LONGHAUL_FORWARD(cuptiActivityFlushAll)(flag);
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                       CUpti_Activity** record) {
  return LONGHAUL_FORWARD(cuptiActivityGetNextRecord)(buffer, validBufferSizeBytes, record);
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId,
                                              size_t* dropped) {
  return LONGHAUL_FORWARD(cuptiActivityGetNumDroppedRecords)(context, streamId, dropped);
}
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   uint64_t id) {
  return LONGHAUL_FORWARD(cuptiActivityPushExternalCorrelationId)(kind, id);
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t* lastId) {
  return LONGHAUL_FORWARD(cuptiActivityPopExternalCorrelationId)(kind, lastId);
}

}  // extern "C"
