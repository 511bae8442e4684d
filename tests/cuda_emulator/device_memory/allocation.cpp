#include <cstdint>
#include <cstring>

#include "device.hpp"
#include "device_memory/memory.hpp"
#include "kernels/signals.hpp"

using namespace longhaul::on_host;

namespace {

cudaError_t give(void** memory, std::size_t bytes, longhaul::on_host::Memory kind,
                 longhaul::on_host::Shareable shareable, bool pooled) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  *memory = longhaul::on_host::allocate(bytes, kind, shareable, pooled);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

/// The piece that begins there, if it is of this kind.
std::optional<longhaul::on_host::Allocation> begins(const void* memory,
                                                    longhaul::on_host::Memory kind) {
  const auto piece = longhaul::on_host::find_allocation(memory);
  if (!piece || piece->data != memory || piece->kind != kind || piece->opened > 0)
    return std::nullopt;
  return piece;
}

}  // namespace

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return longhaul::on_host::call([&] {
    return give(memory, bytes, longhaul::on_host::Memory::device, longhaul::on_host::Shareable::yes,
                false);
  });
}

cudaError_t cudaFree(void* memory) {
  return longhaul::on_host::call([&] {
    if (memory == nullptr) return cudaSuccess;
    const auto piece = begins(memory, longhaul::on_host::Memory::device);
    if (!piece) return cudaErrorInvalidValue;
    longhaul::on_host::drain_device(piece->device);
    longhaul::on_host::forget_bytes(*piece);
    return longhaul::on_host::free_memory(piece->data);
  });
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return longhaul::on_host::call([&] {
    return give(memory, bytes, longhaul::on_host::Memory::pinned, longhaul::on_host::Shareable::no,
                false);
  });
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return cudaHostAlloc(memory, bytes, 0);
}

cudaError_t cudaFreeHost(void* memory) {
  return longhaul::on_host::call([&] {
    if (memory == nullptr) return cudaSuccess;
    const auto piece = begins(memory, longhaul::on_host::Memory::pinned);
    if (!piece) return cudaErrorInvalidValue;
    for (int device = 0; device < longhaul::on_host::device_count(); ++device)
      longhaul::on_host::drain_device(device);
    return longhaul::on_host::free_memory(piece->data);
  });
}

// Until the stream gets there, its last owner may still use it: no other stream may touch it.
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  return longhaul::on_host::call([&] {
    const auto queue = longhaul::on_host::queue_of(stream);
    if (!queue) return cudaErrorInvalidResourceHandle;
    const cudaError_t code = give(memory, bytes, longhaul::on_host::Memory::device,
                                  longhaul::on_host::Shareable::no, true);
    if (code != cudaSuccess || *memory == nullptr) return code;
    longhaul::on_host::catch_illegal_addresses();
    const longhaul::on_host::Allocation piece = longhaul::on_host::find_allocation(*memory).value();
    longhaul::on_host::let(piece, longhaul::on_host::Access::none);
    queue->put([piece] { longhaul::on_host::let(piece, longhaul::on_host::Access::whole); });
    return cudaSuccess;
  });
}

cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t,
                                    cudaStream_t stream) {
  return cudaMallocAsync(memory, bytes, stream);
}

// Later work of the stream may not use it any more: it is unmapped when the stream gets there.
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return longhaul::on_host::call([&] {
    const auto queue = longhaul::on_host::queue_of(stream);
    if (!queue) return cudaErrorInvalidResourceHandle;
    const auto piece = begins(memory, longhaul::on_host::Memory::device);
    if (!piece) return cudaErrorInvalidValue;
    longhaul::on_host::forget_bytes(*piece);
    queue->put([data = piece->data] { static_cast<void>(longhaul::on_host::free_memory(data)); });
    return cudaSuccess;
  });
}

// Pools keep nothing here: what is freed is gone, so that its use is found.
struct on_host_pool {};

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return longhaul::on_host::call([&] {
    if (properties->location.id < 0 || properties->location.id >= longhaul::on_host::device_count())
      return cudaErrorInvalidDevice;
    *pool = new on_host_pool;
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  static on_host_pool all;
  return longhaul::on_host::call([&] {
    *pool = &all;
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return longhaul::on_host::call([] { return cudaSuccess; });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  return longhaul::on_host::call([&] {
    if (attribute == cudaMemPoolAttrReleaseThreshold) return cudaErrorNotSupported;
    const std::uint64_t bytes =
        longhaul::on_host::bytes_in_use(longhaul::on_host::current_device());
    std::memcpy(value, &bytes, sizeof bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) {
  return longhaul::on_host::call([] { return cudaSuccess; });
}
