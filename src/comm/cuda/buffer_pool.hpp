#pragma once

#include <bit>
#include <cstddef>
#include <map>
#include <memory>

#include "cuda/handles.hpp"

namespace longhaul::comm {

/// Memory ranges to use again, since asking CUDA for some may wait for the whole device. `Memory`
/// is made from a number of bytes: PinnedMemory<std::byte> or DeviceBuffer.
template <typename Memory>
class BufferPool {
public:
  /// At least `bytes` (0: none); back in the pool when the last owner lets go, which may be after
  /// the pool's own end.
  [[nodiscard]] std::shared_ptr<std::byte> take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    const std::size_t size = std::bit_ceil(bytes);
    std::unique_ptr<Memory> memory;
    if (const auto found = free_->find(size); found != free_->end()) {
      memory = std::move(found->second);
      free_->erase(found);
    } else {
      memory = std::make_unique<Memory>(size);
    }
    std::byte* const data = memory->data();
    return {data, [free = free_, size, owner = memory.release()](std::byte*) {
              free->emplace(size, std::unique_ptr<Memory>{owner});
            }};
  }

private:
  using Free = std::multimap<std::size_t, std::unique_ptr<Memory>>;
  std::shared_ptr<Free> free_ = std::make_shared<Free>();
};

using PinnedPool = BufferPool<cuda::PinnedMemory<std::byte>>;
using DevicePool = BufferPool<cuda::DeviceBuffer>;

/// Does this lie in a device's memory (not in the host's, pinned or not)?
[[nodiscard]] bool is_on_device(const void* data);

}  // namespace longhaul::comm
