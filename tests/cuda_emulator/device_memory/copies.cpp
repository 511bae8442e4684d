#include <cstring>
#include <memory>
#include <vector>

#include "activity/activity.hpp"
#include "device.hpp"
#include "device_memory/memory.hpp"

using namespace longhaul::on_host;

namespace {

enum class Side : unsigned char { device, pinned, pageable, wrong };

/// The kind of `memory`, of which `bytes` will be used.
Side side_of(const void* memory, std::size_t bytes) {
  const auto piece = longhaul::on_host::find_allocation(memory);
  if (!piece || (memory == piece->data + piece->bytes && bytes > 0)) return Side::pageable;
  if (!longhaul::on_host::holds(*piece, memory, bytes)) return Side::wrong;
  return piece->kind == longhaul::on_host::Memory::device ? Side::device : Side::pinned;
}

bool on_device(Side side) { return side == Side::device; }

cudaError_t check_sides(Side to, Side from, cudaMemcpyKind kind) {
  if (to == Side::wrong || from == Side::wrong)
    return longhaul::on_host::refuse(cudaErrorInvalidValue,
                                     "a copy goes beyond the end of its memory");
  const bool up = kind == cudaMemcpyHostToDevice, down = kind == cudaMemcpyDeviceToHost;
  const bool within = kind == cudaMemcpyDeviceToDevice;
  if ((up && (!on_device(to) || on_device(from))) ||
      (down && (on_device(to) || !on_device(from))) ||
      (within && (!on_device(to) || !on_device(from))))
    return longhaul::on_host::refuse(cudaErrorInvalidValue,
                                     "a copy's direction does not fit its memory");
  return cudaSuccess;
}

Activity activity_of(Side to, Side from) {
  return !on_device(to)     ? Activity::copy_out
         : !on_device(from) ? Activity::copy_in
                            : Activity::copy_within;
}

/// As CUDA says ("API synchronization behavior"): what comes from pageable memory is read before
/// this returns; what goes there has arrived.
cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream, bool waits) {
  const auto queue = longhaul::on_host::queue_of(stream);
  if (!queue) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  const Side to_side = side_of(to, bytes), from_side = side_of(from, bytes);
  if (const cudaError_t code = check_sides(to_side, from_side, kind)) return code;
  const Activity activity = activity_of(to_side, from_side);
  if (from_side == Side::pageable) {
    const auto* const first = static_cast<const std::byte*>(from);
    const auto staged = std::make_shared<std::vector<std::byte>>(first, first + bytes);
    queue->put(longhaul::on_host::recorded(
        activity, {}, [to, staged] { std::memcpy(to, staged->data(), staged->size()); }));
  } else {
    queue->put(longhaul::on_host::recorded(activity, {},
                                           [to, from, bytes] { std::memmove(to, from, bytes); }));
  }
  if (waits || to_side == Side::pageable) queue->drain();
  return longhaul::on_host::sticky_error();
}

cudaError_t set(void* memory, int value, std::size_t bytes, cudaStream_t stream, bool waits) {
  const auto queue = longhaul::on_host::queue_of(stream);
  if (!queue) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  const Side side = side_of(memory, bytes);
  if (side == Side::wrong || side == Side::pageable)
    return longhaul::on_host::refuse(cudaErrorInvalidValue,
                                     "cudaMemset is given memory that is not a device's");
  queue->put(longhaul::on_host::recorded(
      Activity::fill, {}, [memory, value, bytes] { std::memset(memory, value, bytes); }));
  if (waits) queue->drain();
  return longhaul::on_host::sticky_error();
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return longhaul::on_host::call([&] { return copy(to, from, bytes, kind, nullptr, true); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return longhaul::on_host::call([&] { return copy(to, from, bytes, kind, stream, false); });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  if (to_pitch < width || from_pitch < width) return longhaul::on_host::note(cudaErrorInvalidValue);
  for (std::size_t row = 0; row < height; ++row) {
    const cudaError_t code = cudaMemcpyAsync(static_cast<std::byte*>(to) + row * to_pitch,
                                             static_cast<const std::byte*>(from) + row * from_pitch,
                                             width, kind, stream);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return longhaul::on_host::call([&] { return set(memory, value, bytes, nullptr, true); });
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return longhaul::on_host::call([&] { return set(memory, value, bytes, stream, false); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  return longhaul::on_host::call([&] {
    *attributes = {};
    const auto piece = longhaul::on_host::find_allocation(memory);
    if (!piece || memory == piece->data + piece->bytes) return cudaSuccess;
    const bool device = piece->kind == longhaul::on_host::Memory::device;
    attributes->type = device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
    attributes->device = piece->device;
    attributes->devicePointer = const_cast<void*>(memory);
    attributes->hostPointer = device ? nullptr : const_cast<void*>(memory);
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** on_device_side, void* on_host_side, unsigned) {
  return longhaul::on_host::call([&] {
    const auto piece = longhaul::on_host::find_allocation(on_host_side);
    if (!piece || piece->kind == longhaul::on_host::Memory::device) return cudaErrorInvalidValue;
    *on_device_side = on_host_side;
    return cudaSuccess;
  });
}
