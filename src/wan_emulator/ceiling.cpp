#include <array>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unit_text.hpp"
#include "wan_emulator/flows.hpp"
#include "wan_emulator/forwarder.hpp"

namespace longhaul::wan_emulator {
namespace {

using Clock = std::chrono::steady_clock;

/// Sends datagrams as fast as they go; most find a queue full. Those delivered are counted.
double packets_per_second(const WideArea& wan) {
  double rate = 0;
  wan.site(0).inside([&] {
    const FileDescriptor socket{check_call(::socket(AF_INET, SOCK_DGRAM, 0), "socket")};
    sockaddr_in target{};
    target.sin_family = AF_INET;
    target.sin_port = htons(9);  // no one listens; that costs the far side as much as a reader
    check_call(::inet_pton(AF_INET, address_of(1).c_str(), &target.sin_addr), "inet_pton");
    const std::array<char, 72> data{};
    const std::int64_t before = wan.report().paths[1].delivered;
    const auto began = Clock::now();
    while (Clock::now() < began + 500ms)
      for (int i = 0; i < 64; ++i)
        (void)::sendto(socket.get(), data.data(), data.size(), 0,
                       reinterpret_cast<const sockaddr*>(&target), sizeof target);
    const std::chrono::duration<double> elapsed = Clock::now() - began;
    rate = static_cast<double>(wan.report().paths[1].delivered - before) / elapsed.count();
  });
  return rate;
}

}  // namespace

std::string Ceiling::text() const {
  return fmt::format("{} and {:.0f} packets/s", to_text(rate), packets_per_second);
}

Ceiling measure_ceiling(int mtu) {
  ForwarderSettings settings;
  settings.mtu = mtu;
  const WideArea wan{settings};
  FlowSettings flows;
  flows.connections = 4;
  flows.window = flows.send_buffer = flows.receive_buffer = 4_MiB;
  flows.warmup = 300ms;
  flows.measured = 1s;
  Ceiling ceiling;
  ceiling.rate = measure_flows(wan.site(0), wan.site(1), flows).rate();
  ceiling.packets_per_second = packets_per_second(wan);
  return ceiling;
}

}  // namespace longhaul::wan_emulator
