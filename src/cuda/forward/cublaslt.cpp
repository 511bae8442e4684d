#include <cublasLt.h>

#include "cuda/forward/library.hpp"

namespace {

const longhaul::cuda::Library& library() {
  static const longhaul::cuda::Library loaded{"libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)};
  return loaded;
}

}  // namespace

extern "C" {

const char* cublasLtGetStatusName(cublasStatus_t status) {
  return LONGHAUL_FORWARD(cublasLtGetStatusName)(status);
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return LONGHAUL_FORWARD(cublasLtGetStatusString)(status);
}
size_t cublasLtGetVersion() { return LONGHAUL_FORWARD(cublasLtGetVersion)(); }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* lightHandle) {
  return LONGHAUL_FORWARD(cublasLtCreate)(lightHandle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle) {
  return LONGHAUL_FORWARD(cublasLtDestroy)(lightHandle);
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc,
                              const void* alpha, const void* A, cublasLtMatrixLayout_t Adesc,
                              const void* B, cublasLtMatrixLayout_t Bdesc, const void* beta,
                              const void* C, cublasLtMatrixLayout_t Cdesc, void* D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspaceSizeInBytes, cudaStream_t stream) {
  return LONGHAUL_FORWARD(cublasLtMatmul)(lightHandle, computeDesc, alpha, A, Adesc, B, Bdesc, beta,
                                          C, Cdesc, D, Ddesc, algo, workspace, workspaceSizeInBytes,
                                          stream);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmulDesc,
                                        cublasComputeType_t computeType, cudaDataType_t scaleType) {
  return LONGHAUL_FORWARD(cublasLtMatmulDescCreate)(matmulDesc, computeType, scaleType);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc) {
  return LONGHAUL_FORWARD(cublasLtMatmulDescDestroy)(matmulDesc);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,
                                              cublasLtMatmulDescAttributes_t attr, const void* buf,
                                              size_t sizeInBytes) {
  return LONGHAUL_FORWARD(cublasLtMatmulDescSetAttribute)(matmulDesc, attr, buf, sizeInBytes);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* matLayout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  return LONGHAUL_FORWARD(cublasLtMatrixLayoutCreate)(matLayout, type, rows, cols, ld);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout) {
  return LONGHAUL_FORWARD(cublasLtMatrixLayoutDestroy)(matLayout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matLayout,
                                                cublasLtMatrixLayoutAttribute_t attr,
                                                const void* buf, size_t sizeInBytes) {
  return LONGHAUL_FORWARD(cublasLtMatrixLayoutSetAttribute)(matLayout, attr, buf, sizeInBytes);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* pref) {
  return LONGHAUL_FORWARD(cublasLtMatmulPreferenceCreate)(pref);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref) {
  return LONGHAUL_FORWARD(cublasLtMatmulPreferenceDestroy)(pref);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t attr,
                                                    const void* buf, size_t sizeInBytes) {
  return LONGHAUL_FORWARD(cublasLtMatmulPreferenceSetAttribute)(pref, attr, buf, sizeInBytes);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
    cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    cublasLtMatmulPreference_t preference, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int* returnAlgoCount) {
  return LONGHAUL_FORWARD(cublasLtMatmulAlgoGetHeuristic)(
      lightHandle, operationDesc, Adesc, Bdesc, Cdesc, Ddesc, preference, requestedAlgoCount,
      heuristicResultsArray, returnAlgoCount);
}

}  // extern "C"
