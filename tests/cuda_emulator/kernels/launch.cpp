#include "on_host/launch.hpp"

#include <atomic>
#include <cstdio>
#include <ctime>

#include <sched.h>

#include "activity/activity.hpp"
#include "cuda/intrinsics.hpp"
#include "device.hpp"
#include "device_memory/memory.hpp"
#include "on_host/block.hpp"

namespace longhaul::on_host {
namespace {

constexpr std::size_t kShared = 48U << 10U, kMostShared = 227U << 10U;
/// Kernels that have asked for more dynamic shared memory do not have names here: one for all.
std::atomic<std::size_t> allowed_shared{kShared};

/// The one attribute that is known here.
bool is_prepared(const cudaLaunchConfig_t& config) {
  return config.numAttrs == 1 &&
         config.attrs->id == cudaLaunchAttributeProgrammaticStreamSerialization &&
         config.attrs->val.programmaticStreamSerializationAllowed == 1;
}

bool allowed(const cudaLaunchConfig_t& config) {
  const dim3 block = config.blockDim, grid = config.gridDim;
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  return threads > 0 && threads <= 1024 && block.z <= 64 && grid.x > 0 && grid.y > 0 &&
         grid.z > 0 && grid.x <= 0x7fffffffU && grid.y <= 65535 && grid.z <= 65535 &&
         config.dynamicSmemBytes <= allowed_shared && (config.numAttrs == 0 || is_prepared(config));
}

/// Devices do not see each other's memory here: no caller asks for that.
bool reaches(int device, const volatile void* pointer) {
  const auto piece = find_allocation(pointer);
  return piece && (piece->kind != Memory::device || piece->device == device);
}

/// A name as compilers spell it; kernels with parameters of the same types share one.
std::string name_of(const std::function<void()>& kernel) {
  return std::string{"_Z"} + kernel.target_type().name();
}

cudaError_t error_of(Outcome outcome) {
  return outcome == Outcome::illegal_address ? cudaErrorIllegalAddress : cudaErrorLaunchFailure;
}

}  // namespace

cudaError_t launch(const cudaLaunchConfig_t& config,
                   std::initializer_list<const volatile void*> pointers,
                   std::function<void()> kernel) {
  return call([&] {
    const auto queue = queue_of(config.stream);
    if (!queue) return cudaErrorInvalidResourceHandle;
    if (queue->device() != current_device())
      return refuse(cudaErrorInvalidResourceHandle, "the stream is of another device");
    if (!allowed(config)) return cudaErrorInvalidConfiguration;
    bool foreign = false;
    for (const volatile void* pointer : pointers)
      foreign |= pointer != nullptr && !reaches(queue->device(), pointer);
    if (foreign)
      static_cast<void>(refuse(cudaErrorIllegalAddress,
                               "a kernel is given an address of the host that CUDA does not know, "
                               "or of another device"));
    const Grid grid{config.gridDim, config.blockDim, config.dynamicSmemBytes, is_prepared(config)};
    const std::string name = name_of(kernel);
    queue->put(recorded(Activity::kernel, name, [grid, foreign, kernel = std::move(kernel)] {
      const Outcome outcome = foreign ? Outcome::illegal_address : run_blocks(grid, kernel);
      if (outcome != Outcome::fine) set_sticky_error(error_of(outcome));
    }));
    return cudaSuccess;
  });
}

}  // namespace longhaul::on_host

using namespace longhaul::on_host;

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  return longhaul::on_host::call([&] {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        static_cast<std::size_t>(value) > kMostShared)
      return cudaErrorInvalidValue;
    std::size_t before = allowed_shared;
    const auto asked = static_cast<std::size_t>(value);
    while (before < asked && !allowed_shared.compare_exchange_weak(before, asked)) {
    }
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  return longhaul::on_host::call([&] {
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(allowed_shared);
    attributes->numRegs = 32;
    attributes->ptxVersion = 90;
    return cudaSuccess;
  });
}

namespace longhaul::cuda {

std::uint64_t global_timer() {
  // A kernel that spins looks every few hundred nanoseconds: no other code looks so often for so
  // long.
  static thread_local std::uint64_t last = 0;
  static thread_local int looks = 0;
  auto now = static_cast<std::uint64_t>(on_host::monotonic_ns());
  looks = now - last < 20'000 ? looks + 1 : 0;
  if (looks > 100)
    nanosleep(5'000);
  else if (looks > 10)
    sched_yield();
  if (looks > 10) now = static_cast<std::uint64_t>(on_host::monotonic_ns());
  last = now;
  return now;
}

void nanosleep(unsigned nanoseconds) { __nanosleep(nanoseconds); }

}  // namespace longhaul::cuda

void __nanosleep(unsigned nanoseconds) {
  const timespec time{0, static_cast<long>(nanoseconds)};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}
