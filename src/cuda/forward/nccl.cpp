#include <nccl.h>

#include "cuda/forward/library.hpp"

namespace {

const longhaul::cuda::Library& library() {
  static const longhaul::cuda::Library loaded{"libnccl.so.2"};
  return loaded;
}

}  // namespace

#define FORWARD(name)                                                 \
  [] {                                                                \
    static auto* const found = library().find<decltype(name)>(#name); \
    return found;                                                     \
  }()

extern "C" {

ncclResult_t ncclGetVersion(int* version) { return FORWARD(ncclGetVersion)(version); }
const char* ncclGetErrorString(ncclResult_t result) { return FORWARD(ncclGetErrorString)(result); }
const char* ncclGetLastError(ncclComm_t comm) { return FORWARD(ncclGetLastError)(comm); }
ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) { return FORWARD(ncclGetUniqueId)(uniqueId); }
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return FORWARD(ncclCommInitRank)(comm, nranks, commId, rank);
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  return FORWARD(ncclCommInitRankConfig)(comm, nranks, commId, rank, config);
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                           ncclConfig_t* config) {
  return FORWARD(ncclCommSplit)(comm, color, key, newcomm, config);
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return FORWARD(ncclCommFinalize)(comm); }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return FORWARD(ncclCommDestroy)(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return FORWARD(ncclCommAbort)(comm); }
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return FORWARD(ncclCommGetAsyncError)(comm, asyncError);
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return FORWARD(ncclCommCount)(comm, count);
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return FORWARD(ncclCommUserRank)(comm, rank);
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return FORWARD(ncclCommCuDevice)(comm, device);
}
ncclResult_t ncclGroupStart() { return FORWARD(ncclGroupStart)(); }
ncclResult_t ncclGroupEnd() { return FORWARD(ncclGroupEnd)(); }
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return FORWARD(ncclSend)(sendbuff, count, datatype, peer, comm, stream);
}
ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return FORWARD(ncclRecv)(recvbuff, count, datatype, peer, comm, stream);
}
ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return FORWARD(ncclAllReduce)(sendbuff, recvbuff, count, datatype, op, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return FORWARD(ncclReduceScatter)(sendbuff, recvbuff, recvcount, datatype, op, comm, stream);
}
ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return FORWARD(ncclAllGather)(sendbuff, recvbuff, sendcount, datatype, comm, stream);
}
ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return FORWARD(ncclBroadcast)(sendbuff, recvbuff, count, datatype, root, comm, stream);
}
ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return FORWARD(ncclReduce)(sendbuff, recvbuff, count, datatype, op, root, comm, stream);
}

}  // extern "C"
