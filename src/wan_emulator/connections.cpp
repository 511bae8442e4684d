#include <array>

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "wan_emulator/flows.hpp"
#include "wan_emulator/tun_device.hpp"

namespace longhaul::wan_emulator {
namespace {

constexpr std::uint16_t kPort = 5201;
constexpr int kConnectMilliseconds = 30'000;

int option_of(const FileDescriptor& socket, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  check_call(::getsockopt(socket.get(), level, name, &value, &size), "getsockopt");
  return value;
}

void set_option(const FileDescriptor& socket, int level, int name, std::int64_t value) {
  const int number = static_cast<int>(value);
  check_call(::setsockopt(socket.get(), level, name, &number, sizeof number), "setsockopt");
}

void set_congestion_control(const FileDescriptor& socket, const NetworkNamespace& inside,
                            const std::string& name) {
  const auto size = static_cast<socklen_t>(name.size());
  if (::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), size) == 0) return;
  fail("congestion control {} is not there ({}). The kernel has: {}.", name, std::strerror(errno),
       inside.get("ipv4/tcp_available_congestion_control"));
}

std::string congestion_control_of(const FileDescriptor& socket) {
  std::array<char, 32> name{};
  socklen_t size = name.size() - 1;
  check_call(::getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size),
             "getsockopt");
  return name.data();
}

/// Buffers are forced: the system-wide limits (net.core.rmem_max) are for others.
void set_buffers(const FileDescriptor& socket, const FlowSettings& settings) {
  if (settings.send_buffer > Bytes{0})
    set_option(socket, SOL_SOCKET, SO_SNDBUFFORCE, settings.send_buffer.count());
  if (settings.receive_buffer > Bytes{0})
    set_option(socket, SOL_SOCKET, SO_RCVBUFFORCE, settings.receive_buffer.count());
  if (settings.window > Bytes{0})
    set_option(socket, IPPROTO_TCP, TCP_WINDOW_CLAMP, settings.window.count());
}

sockaddr_in address_for(int site) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  check_call(::inet_pton(AF_INET, address_of(site).c_str(), &address.sin_addr), "inet_pton");
  return address;
}

FileDescriptor tcp_socket() {
  return FileDescriptor{
      check_call(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket")};
}

FileDescriptor listener(const FlowSettings& settings) {
  FileDescriptor socket = tcp_socket();
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  set_buffers(socket, settings);  // before listen: the scale of the window follows from it
  const sockaddr_in address = address_for(1);
  check_call(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
             "bind");
  check_call(::listen(socket.get(), settings.connections), "listen");
  return socket;
}

void wait_for(const FileDescriptor& socket, short events) {
  pollfd waiting{socket.get(), events, 0};
  if (check_call(::poll(&waiting, 1, kConnectMilliseconds), "poll") == 0)
    throw Error{"no TCP connection came about within 30 s (all packets lost?). Lower --loss.",
                ExitCode::run_failed};
}

FlowState state_of(const FileDescriptor& sender, const FileDescriptor& receiver) {
  tcp_info info{};
  socklen_t size = sizeof info;
  check_call(::getsockopt(sender.get(), IPPROTO_TCP, TCP_INFO, &info, &size), "TCP_INFO");
  const auto microseconds = [](auto n) { return std::chrono::microseconds{n}; };
  FlowState state;
  state.smoothed_rtt = microseconds(info.tcpi_rtt);
  state.least_rtt = microseconds(info.tcpi_min_rtt);
  state.congestion_window_bytes = std::int64_t{info.tcpi_snd_cwnd} * info.tcpi_snd_mss;
  state.advertised_window_bytes = info.tcpi_snd_wnd;
  state.retransmits = info.tcpi_total_retrans;
  state.busy = microseconds(info.tcpi_busy_time);
  state.window_limited = microseconds(info.tcpi_rwnd_limited);
  state.buffer_limited = microseconds(info.tcpi_sndbuf_limited);
  state.send_buffer_bytes = option_of(sender, SOL_SOCKET, SO_SNDBUF);
  state.receive_buffer_bytes = option_of(receiver, SOL_SOCKET, SO_RCVBUF);
  state.congestion_control = congestion_control_of(sender);
  return state;
}

}  // namespace

Connections::Connections(const NetworkNamespace& from, const NetworkNamespace& to,
                         const FlowSettings& settings) {
  FileDescriptor listening;
  to.inside([&] { listening = listener(settings); });
  const sockaddr_in address = address_for(1);
  from.inside([&] {
    for (int i = 0; i < settings.connections; ++i) {
      FileDescriptor socket = tcp_socket();
      set_congestion_control(socket, from, settings.congestion_control);
      set_buffers(socket, settings);
      const auto* target = reinterpret_cast<const sockaddr*>(&address);
      if (::connect(socket.get(), target, sizeof address) < 0 && errno != EINPROGRESS)
        check_call(-1, "connect");
      senders_.push_back(std::move(socket));
    }
  });
  for (int i = 0; i < settings.connections; ++i) {
    wait_for(listening, POLLIN);
    receivers_.emplace_back(check_call(
        ::accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC), "accept"));
    set_buffers(receivers_.back(), settings);
  }
  for (const FileDescriptor& sender : senders_) wait_for(sender, POLLOUT);
}

void Connections::limit_windows(const FlowSettings& settings) const {
  if (settings.window == Bytes{0}) return;
  for (const FileDescriptor& receiver : receivers_)
    set_option(receiver, IPPROTO_TCP, TCP_WINDOW_CLAMP, settings.window.count());
}

std::vector<FlowState> Connections::states() const {
  std::vector<FlowState> states;
  for (std::size_t i = 0; i < senders_.size(); ++i)
    states.push_back(state_of(senders_[i], receivers_[i]));
  return states;
}

}  // namespace longhaul::wan_emulator
