#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

namespace longhaul::wan {

/// A packet as a TUN device hands it over: the kernel's offload header (virtio_net_hdr), then an
/// IPv4 packet. Its buffer is never filled in advance: at some Gbit/s that would cost as much as
/// copying.
class Frame {
public:
  Frame() = default;
  explicit Frame(std::size_t capacity)
      : bytes_{std::make_unique_for_overwrite<std::byte[]>(capacity)},
        capacity_{capacity},
        size_{capacity} {}
  [[nodiscard]] static Frame copy_of(std::span<const std::byte> bytes) {
    Frame frame{bytes.size()};
    std::copy(bytes.begin(), bytes.end(), frame.bytes_.get());
    return frame;
  }

  [[nodiscard]] std::span<std::byte> bytes() { return {bytes_.get(), size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  /// At most the capacity; what lies there stays.
  void resize(std::size_t size) { size_ = std::min(size, capacity_); }

private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0, size_ = 0;
};

}  // namespace longhaul::wan
