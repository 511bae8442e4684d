#include "wan_emulator/tun_device.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace longhaul::wan_emulator {
namespace {

/// The kernel's struct virtio_net_hdr, whose own header is not C++.
struct OffloadHeader {
  std::uint8_t flags, kind;  ///< kind 0: one segment
  std::uint16_t header_size, segment_size, checksum_start, checksum_offset;
};
constexpr std::size_t kHeader = sizeof(OffloadHeader);
static_assert(kHeader == 10);
constexpr std::size_t kIpHeader = 20;
/// IPv4 and TCP headers with time stamps, which each segment of a long one has on the wire.
constexpr std::int64_t kSegmentHeaders = 52;
/// Packets that wait between TCP and the forwarder; few would be lost before the WAN's own queue.
constexpr int kDeviceQueue = 10'000;

ifreq request_of(const char* name) {
  ifreq request{};
  std::strcpy(request.ifr_name, name);
  return request;
}

void set_address(int socket, unsigned long what, const std::string& address) {
  ifreq request = request_of(TunDevice::kName);
  sockaddr_in value{};
  value.sin_family = AF_INET;
  check_call(::inet_pton(AF_INET, address.c_str(), &value.sin_addr), "reading an address");
  std::memcpy(&request.ifr_addr, &value, sizeof value);
  check_call(::ioctl(socket, what, &request), "setting the address of a TUN device");
}

void bring_up(int site, int mtu) {
  const FileDescriptor socket{check_call(::socket(AF_INET, SOCK_DGRAM, 0), "socket")};
  set_address(socket.get(), SIOCSIFADDR, address_of(site));
  set_address(socket.get(), SIOCSIFNETMASK, "255.255.255.0");
  ifreq request = request_of(TunDevice::kName);
  request.ifr_mtu = mtu;
  check_call(::ioctl(socket.get(), SIOCSIFMTU, &request), "setting the MTU of a TUN device");
  request = request_of(TunDevice::kName);
  request.ifr_qlen = kDeviceQueue;
  check_call(::ioctl(socket.get(), SIOCSIFTXQLEN, &request), "setting the queue of a TUN device");
  request = request_of(TunDevice::kName);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  check_call(::ioctl(socket.get(), SIOCSIFFLAGS, &request), "raising a TUN device");
}

}  // namespace

std::string address_of(int site) { return fmt::format("10.83.0.{}", site + 1); }

TunDevice::TunDevice(const NetworkNamespace& inside, int site, int mtu) {
  inside.inside([&] {
    descriptor_ = FileDescriptor{
        check_call(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK), "open /dev/net/tun")};
    ifreq request = request_of(kName);
    request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    check_call(::ioctl(get(), TUNSETIFF, &request), "making a TUN device");
    check_call(::ioctl(get(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4), "setting a TUN's offloads");
    bring_up(site, mtu);
  });
}

std::size_t TunDevice::read(std::span<std::byte> buffer) const {
  const ssize_t count = ::read(get(), buffer.data(), buffer.size());
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EAGAIN || errno == EINTR) return 0;
  return static_cast<std::size_t>(check_call(count, "reading a TUN device"));
}

bool TunDevice::write(std::span<const std::byte> frame) const {
  return ::write(get(), frame.data(), frame.size()) == static_cast<ssize_t>(frame.size());
}

FrameRoute route_of(std::span<const std::byte> frame, int sites) {
  if (frame.size() < kHeader + kIpHeader || (frame[kHeader] >> 4) != std::byte{4}) return {};
  OffloadHeader header{};
  std::memcpy(&header, frame.data(), kHeader);
  FrameRoute route;
  route.site = std::to_integer<int>(frame[kHeader + 19]) - 1;
  if (route.site >= sites || frame[kHeader + 16] != std::byte{10}) return {};
  route.wire_bytes = static_cast<std::int64_t>(frame.size() - kHeader);
  if (header.kind != 0 && header.segment_size > 0) {
    const std::int64_t payload = route.wire_bytes - kSegmentHeaders;
    const std::int64_t segments = (payload + header.segment_size - 1) / header.segment_size;
    route.wire_bytes += (segments - 1) * kSegmentHeaders;
  }
  return route;
}

}  // namespace longhaul::wan_emulator
