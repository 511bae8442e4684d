#include "wan_emulator/flows.hpp"

#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace longhaul::wan_emulator {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kChunk = static_cast<std::size_t>(kFlowWrite.count());
constexpr std::int64_t kTurn = 4 << 20;  ///< bytes of one connection before others have their turn
constexpr int kWaitMilliseconds = 50;
constexpr int kWarmupParts = 10;  ///< after each of which the window is limited anew
constexpr int kNice = -15;        ///< both ends go before what else the machine does

/// Waits for readiness of any of some connections.
class Watch {
public:
  Watch(const std::vector<FileDescriptor>& sockets, std::uint32_t events)
      : poll_{check_call(::epoll_create1(EPOLL_CLOEXEC), "epoll")}, ready_(sockets.size()) {
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      epoll_event event{};
      event.events = events;
      event.data.u64 = i;
      check_call(::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, sockets[i].get(), &event), "epoll");
    }
  }
  /// Calls `visit` with the index of each connection that is ready.
  template <typename Visit>
  void wait(const Visit& visit) {
    const int count = ::epoll_wait(poll_.get(), ready_.data(), static_cast<int>(ready_.size()),
                                   kWaitMilliseconds);
    for (int i = 0; i < count; ++i)
      visit(static_cast<std::size_t>(ready_[static_cast<std::size_t>(i)].data.u64));
  }

private:
  FileDescriptor poll_;
  std::vector<epoll_event> ready_;
};

/// Raises the priority of the calling thread alone (Linux); without the privilege it stays.
void go_first() { (void)::setpriority(PRIO_PROCESS, 0, kNice); }

void send_until(const std::stop_token& stop, const std::vector<FileDescriptor>& sockets) {
  go_first();
  const std::vector<std::byte> data(kChunk);
  Watch watch{sockets, EPOLLOUT};
  while (!stop.stop_requested())
    watch.wait([&](std::size_t i) {
      for (std::int64_t sent = 0; sent < kTurn && !stop.stop_requested();) {
        const ssize_t n = ::send(sockets[i].get(), data.data(), data.size(), MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += n;
      }
    });
}

/// Counts what arrives. The bytes are dropped inside the kernel (MSG_TRUNC): no one reads them, and
/// copying them would only lower what two cores can carry.
void receive_until(const std::stop_token& stop, const std::vector<FileDescriptor>& sockets,
                   std::vector<std::atomic<std::int64_t>>& received) {
  go_first();
  Watch watch{sockets, EPOLLIN};
  while (!stop.stop_requested())
    watch.wait([&](std::size_t i) {
      for (std::int64_t taken = 0; taken < kTurn && !stop.stop_requested();) {
        const ssize_t n = ::recv(sockets[i].get(), nullptr, kChunk, MSG_TRUNC);
        if (n <= 0) break;
        taken += n;
        received[i] += n;
      }
    });
}

using Counts = std::vector<std::int64_t>;

Counts copy_of(const std::vector<std::atomic<std::int64_t>>& counters) {
  return {counters.begin(), counters.end()};
}

std::int64_t sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

}  // namespace

Bandwidth FlowResult::rate() const {
  std::int64_t bytes = 0;
  for (const FlowState& flow : flows) bytes += flow.bytes;
  return Bandwidth{static_cast<double>(bytes) * 8 / std::chrono::duration<double>(elapsed).count()};
}

std::int64_t FlowResult::retransmits() const {
  std::int64_t segments = 0;
  for (const FlowState& flow : flows) segments += flow.retransmits;
  return segments;
}

double FlowResult::variation_percent() const {
  if (interval_bytes.size() < 2) return 0;
  const auto n = static_cast<double>(interval_bytes.size());
  const double mean = static_cast<double>(sum(interval_bytes)) / n;
  double squares = 0;
  for (const std::int64_t bytes : interval_bytes)
    squares += (static_cast<double>(bytes) - mean) * (static_cast<double>(bytes) - mean);
  return mean > 0 ? 100 * std::sqrt(squares / (n - 1)) / mean : 0;
}

FlowResult measure_flows(const NetworkNamespace& from, const NetworkNamespace& to,
                         const FlowSettings& settings) {
  const Connections connections{from, to, settings};
  std::vector<std::atomic<std::int64_t>> received(connections.receivers().size());
  const std::jthread sender{
      [&](const std::stop_token& stop) { send_until(stop, connections.senders()); }};
  const std::jthread receiver{
      [&](const std::stop_token& stop) { receive_until(stop, connections.receivers(), received); }};
  for (int part = 0; part < kWarmupParts; ++part) {
    connections.limit_windows(settings);
    std::this_thread::sleep_for(settings.warmup / kWarmupParts);
  }

  FlowResult result;
  const auto began = Clock::now();
  const Counts before = copy_of(received);
  Counts last = before;
  for (auto next = began; next < began + settings.measured;) {
    next += settings.interval;
    std::this_thread::sleep_until(next);
    const Counts here = copy_of(received);
    result.interval_bytes.push_back(sum(here) - sum(last));
    last = here;
  }
  result.elapsed = Clock::now() - began;
  result.flows = connections.states();
  for (std::size_t i = 0; i < last.size(); ++i) result.flows[i].bytes = last[i] - before[i];
  return result;
}

}  // namespace longhaul::wan_emulator
