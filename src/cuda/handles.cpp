#include "cuda/handles.hpp"

#include <cstring>

#include "base/error.hpp"

namespace longhaul::cuda {
namespace {

cudaEvent_t make_event(Timing timing, Sharing sharing) {
  unsigned flags = timing == Timing::off ? cudaEventDisableTiming : cudaEventDefault;
  if (sharing == Sharing::between_processes) flags |= cudaEventInterprocess;
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags));
  return event;
}

cudaStream_t make_stream(Urgency urgency) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                     urgency == Urgency::high ? greatest : least));
  return stream;
}

}  // namespace

Event::Event(Timing timing, Sharing sharing) : event_{make_event(timing, sharing)} {}

Stream::Stream(Urgency urgency) : stream_{make_stream(urgency)} {}

namespace detail {

void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes == 0) return memory;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
  std::memset(memory, 0, bytes);
  return memory;
}

void* allocate_on_device(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes == 0) return memory;
  const cudaError_t code = cudaMalloc(&memory, bytes);
  if (code == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    std::size_t left = 0, all = 0;
    check(cudaMemGetInfo(&left, &all));
    throw Error{fmt::format("the device cannot give {} bytes (it has {} of {} left). Use smaller "
                            "microbatches, fewer of them in flight, or more devices.",
                            bytes, left, all),
                ExitCode::run_failed};
  }
  check(code);
  return memory;
}

}  // namespace detail
}  // namespace longhaul::cuda
