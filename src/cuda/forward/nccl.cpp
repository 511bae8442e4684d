#include <nccl.h>

#include "cuda/forward/library.hpp"

namespace {

const longhaul::cuda::Library& library() {
  static const longhaul::cuda::Library loaded{"libnccl.so.2"};
  return loaded;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) { return LONGHAUL_FORWARD(ncclGetVersion)(version); }
const char* ncclGetErrorString(ncclResult_t result) {
  return LONGHAUL_FORWARD(ncclGetErrorString)(result);
}
const char* ncclGetLastError(ncclComm_t comm) { return LONGHAUL_FORWARD(ncclGetLastError)(comm); }
ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  return LONGHAUL_FORWARD(ncclGetUniqueId)(uniqueId);
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return LONGHAUL_FORWARD(ncclCommInitRank)(comm, nranks, commId, rank);
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  return LONGHAUL_FORWARD(ncclCommInitRankConfig)(comm, nranks, commId, rank, config);
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                           ncclConfig_t* config) {
  return LONGHAUL_FORWARD(ncclCommSplit)(comm, color, key, newcomm, config);
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return LONGHAUL_FORWARD(ncclCommFinalize)(comm); }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return LONGHAUL_FORWARD(ncclCommDestroy)(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return LONGHAUL_FORWARD(ncclCommAbort)(comm); }
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return LONGHAUL_FORWARD(ncclCommGetAsyncError)(comm, asyncError);
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return LONGHAUL_FORWARD(ncclCommCount)(comm, count);
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return LONGHAUL_FORWARD(ncclCommUserRank)(comm, rank);
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return LONGHAUL_FORWARD(ncclCommCuDevice)(comm, device);
}
ncclResult_t ncclGroupStart() { return LONGHAUL_FORWARD(ncclGroupStart)(); }
ncclResult_t ncclGroupEnd() { return LONGHAUL_FORWARD(ncclGroupEnd)(); }
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return LONGHAUL_FORWARD(ncclSend)(sendbuff, count, datatype, peer, comm, stream);
}
ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return LONGHAUL_FORWARD(ncclRecv)(recvbuff, count, datatype, peer, comm, stream);
}
ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return LONGHAUL_FORWARD(ncclAllReduce)(sendbuff, recvbuff, count, datatype, op, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return LONGHAUL_FORWARD(ncclReduceScatter)(sendbuff, recvbuff, recvcount, datatype, op, comm,
                                             stream);
}
ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return LONGHAUL_FORWARD(ncclAllGather)(sendbuff, recvbuff, sendcount, datatype, comm, stream);
}
ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return LONGHAUL_FORWARD(ncclBroadcast)(sendbuff, recvbuff, count, datatype, root, comm, stream);
}
ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return LONGHAUL_FORWARD(ncclReduce)(sendbuff, recvbuff, count, datatype, op, root, comm, stream);
}

}  // extern "C"
