#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "wan_emulator/namespaces.hpp"

namespace longhaul::wan_emulator {

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

/// IPv4 address of a site: 10.83.0.(site + 1), one network for all.
[[nodiscard]] std::string address_of(int site);

/// A TUN device inside a namespace, up, with the address of a site. Reads and writes never wait.
/// Checksums and the cutting of long segments are left out on both sides (virtio_net_hdr), so that
/// a frame holds up to 64 KiB whatever the MTU.
class TunDevice {
public:
  /// Size of the largest frame, in bytes.
  static constexpr std::size_t kLargest = 66'000;
  static constexpr const char* kName = "wan0";

  TunDevice(const NetworkNamespace& inside, int site, int mtu);
  [[nodiscard]] int get() const { return descriptor_.get(); }
  /// Bytes read into `buffer`; 0 where nothing waits.
  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) const;
  /// False where the kernel did not take it.
  [[nodiscard]] bool write(std::span<const std::byte> frame) const;

private:
  FileDescriptor descriptor_;
};

/// Where a frame goes and how long it is on a wire that carries packets of the MTU's size.
struct FrameRoute {
  int site = -1;  ///< -1: not IPv4, or none of ours
  std::int64_t wire_bytes = 0;
};
[[nodiscard]] FrameRoute route_of(std::span<const std::byte> frame, int sites);

}  // namespace longhaul::wan_emulator
