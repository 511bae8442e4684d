#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <cuda_runtime_api.h>

#include "cuda/check.hpp"
#include "cuda/urgency.hpp"

/// One move-only owner for each kind of CUDA handle. They belong to the device that is current
/// when they are made, and are used by threads that have chosen it (use_device).
namespace longhaul::cuda {

/// The device of this thread from now on.
inline void use_device(int index, std::source_location where = std::source_location::current()) {
  check(cudaSetDevice(index), where);
}

/// The value that a handle's owner holds: nothing (`Empty`) when moved from.
template <typename Handle, Handle kEmpty, auto kDestroy>
class Owner {
public:
  explicit Owner(Handle handle) : handle_{handle} {}
  Owner(Owner&& other) noexcept : handle_{std::exchange(other.handle_, kEmpty)} {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() {
    if (handle_ != kEmpty) report(kDestroy(handle_), "giving back a handle of CUDA");
  }
  [[nodiscard]] Handle get() const { return handle_; }

private:
  Handle handle_;
};

enum class Timing : bool { off, on };
enum class Sharing : bool { own, between_processes };

/// A mark in a stream. `between_processes` needs Timing::off (cudaIpcGetEventHandle).
class Event {
public:
  explicit Event(Timing timing = Timing::off, Sharing sharing = Sharing::own);
  /// Takes over an event that was made elsewhere (cudaIpcOpenEventHandle).
  explicit Event(cudaEvent_t event) : event_{event} {}

  void record(cudaStream_t stream,
              std::source_location where = std::source_location::current()) const {
    check(cudaEventRecord(get(), stream), where);
  }
  /// Is the work before the last record() done? True if nothing was ever recorded.
  [[nodiscard]] bool done(std::source_location where = std::source_location::current()) const {
    const cudaError_t code = cudaEventQuery(get());
    if (code == cudaErrorNotReady) return false;
    check(code, where);
    return true;
  }
  void wait_on_host(std::source_location where = std::source_location::current()) const {
    check(cudaEventSynchronize(get()), where);
  }
  [[nodiscard]] cudaEvent_t get() const { return event_.get(); }

private:
  Owner<cudaEvent_t, nullptr, cudaEventDestroy> event_;
};

/// Work in order. It does not wait for the legacy default stream.
class Stream {
public:
  explicit Stream(Urgency urgency = Urgency::normal);

  /// Later work of this stream begins after `event`'s last record().
  void wait(const Event& event,
            std::source_location where = std::source_location::current()) const {
    check(cudaStreamWaitEvent(get(), event.get(), 0), where);
  }
  void wait_on_host(std::source_location where = std::source_location::current()) const {
    check(cudaStreamSynchronize(get()), where);
  }
  [[nodiscard]] cudaStream_t get() const { return stream_.get(); }

private:
  Owner<cudaStream_t, nullptr, cudaStreamDestroy> stream_;
};

namespace detail {
[[nodiscard]] void* allocate_pinned(std::size_t bytes);
[[nodiscard]] void* allocate_on_device(std::size_t bytes);
}  // namespace detail

/// Memory of the host that the device reads and writes at the same address. Zeroed.
template <typename T>
class PinnedMemory {
public:
  explicit PinnedMemory(std::size_t count)
      : memory_{detail::allocate_pinned(count * sizeof(T))}, count_{count} {}
  [[nodiscard]] T* data() const { return static_cast<T*>(memory_.get()); }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::span<T> span() const { return {data(), count_}; }
  [[nodiscard]] T& operator[](std::size_t at) const { return data()[at]; }

private:
  Owner<void*, nullptr, cudaFreeHost> memory_;
  std::size_t count_;
};

/// Memory of the device, not zeroed, as cudaMalloc gives it (what cudaIpcGetMemHandle needs).
/// Throws Error that names the bytes and what is left.
class DeviceBuffer {
public:
  explicit DeviceBuffer(std::size_t bytes)
      : memory_{detail::allocate_on_device(bytes)}, bytes_{bytes} {}
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_.get());
  }

private:
  Owner<void*, nullptr, cudaFree> memory_;
  std::size_t bytes_;
};

}  // namespace longhaul::cuda
