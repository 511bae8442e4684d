#include "comm/nccl/channel.hpp"

#include <cstdio>

namespace longhaul::comm::nccl {
namespace {

/// Channels of a communicator: enough for the link of a GPU, and few beside the multiprocessors
/// that compute.
constexpr int kMostBlocks = 16;

/// For what ends a communicator: says it and goes on.
void report(ncclResult_t code, const char* what) {
  if (code != ncclSuccess && code != ncclInProgress)
    std::fprintf(stderr, "longhaul: %s: %s\n", what, ncclGetErrorString(code));
}

}  // namespace

ncclUniqueId new_unique_id() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id));
  return id;
}

Channel::Channel(const ncclUniqueId& id, int ranks, int rank, std::string what)
    : what_{std::move(what)} {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = kMostBlocks;
  require(ncclCommInitRankConfig(&comm_, ranks, id, rank, &config));
}

Channel::~Channel() {
  if (comm_ == nullptr) return;
  ncclResult_t state = ncclSuccess;
  report(ncclCommGetAsyncError(comm_, &state), "asking a communicator for errors");
  if (finishing_ && state == ncclSuccess) {
    report(ncclCommDestroy(comm_), "ending a communicator");
  } else {
    abort();
  }
}

void Channel::require(ncclResult_t code, std::source_location where) const {
  try {
    check(code, comm_, where);
  } catch (const Error& error) {
    throw Error{fmt::format("the communicator for {}: {}", what_, error.what()), error.code()};
  }
}

bool Channel::is_ready() {
  ncclResult_t state = ncclSuccess;
  require(ncclCommGetAsyncError(comm_, &state));
  require(state);
  return state == ncclSuccess;
}

void Channel::advance() {
  while (comm_ != nullptr && is_ready() && !calls_.empty()) {
    if (begun_) {
      const Call call = std::move(calls_.front());
      calls_.pop_front();
      begun_ = false;
      call.begun();
    } else {
      begun_ = true;
      require(calls_.front().begin(comm_));
    }
  }
}

void Channel::finish() {
  if (comm_ == nullptr || finishing_) return;
  finishing_ = true;
  report(ncclCommFinalize(comm_), "finishing a communicator");
}

bool Channel::is_finished() {
  if (comm_ == nullptr) return true;
  ncclResult_t state = ncclSuccess;
  report(ncclCommGetAsyncError(comm_, &state), "asking a communicator for errors");
  return state != ncclInProgress;
}

void Channel::abort() {
  if (comm_ == nullptr) return;
  report(ncclCommAbort(comm_), "aborting a communicator");
  comm_ = nullptr;
}

}  // namespace longhaul::comm::nccl
