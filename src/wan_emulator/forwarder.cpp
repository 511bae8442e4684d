#include "wan_emulator/forwarder.hpp"

#include <bit>
#include <ctime>

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

namespace longhaul::wan_emulator {
namespace {

/// Frames up to this size are copied, so that acknowledgements do not hold large buffers.
constexpr std::size_t kSmall = 2048;
constexpr int kBatch = 64;  ///< packets of one site before others have their turn
constexpr std::size_t kSpareFrames = 2048;

Duration clock_now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds{time.tv_sec} + Duration{time.tv_nsec};
}
Duration wall_time() { return clock_now(CLOCK_MONOTONIC); }

}  // namespace

void Lateness::add(Duration late) {
  longest = std::max(longest, late);
  const auto microseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(late / 1us, 0));
  ++bins[std::min(static_cast<std::size_t>(std::bit_width(microseconds)), kBins - 1)];
}

Duration Lateness::quantile(double share) const {
  std::int64_t all = 0;
  for (const std::int64_t bin : bins) all += bin;
  std::int64_t below = 0;
  for (std::size_t k = 0; k < kBins && all > 0; ++k) {
    below += bins[k];
    if (static_cast<double>(below) >= share * static_cast<double>(all))
      return std::min<Duration>(std::chrono::microseconds{std::int64_t{1} << k}, longest);
  }
  return {};
}

Forwarder::Forwarder(const std::vector<NetworkNamespace>& sites, const ForwarderSettings& settings)
    : settings_{settings}, model_{settings.wan} {
  LONGHAUL_ASSERT(static_cast<int>(sites.size()) == settings.wan.sites, "{} namespaces, {} sites",
                  sites.size(), settings.wan.sites);
  poll_ = FileDescriptor{check_call(::epoll_create1(EPOLL_CLOEXEC), "epoll")};
  timer_ = FileDescriptor{
      check_call(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd")};
  wake_ = FileDescriptor{check_call(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")};
  for (const NetworkNamespace& site : sites)
    devices_.emplace_back(site, static_cast<int>(devices_.size()), settings.mtu);
  std::vector<int> watched{timer_.get(), wake_.get()};
  for (const TunDevice& device : devices_) watched.push_back(device.get());
  for (const int descriptor : watched) {
    epoll_event event{};
    event.events = EPOLLIN;
    check_call(::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &event), "epoll");
  }
  thread_ = std::thread{[this] { run(); }};
}

Forwarder::~Forwarder() {
  stop_ = true;
  const std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) fmt::print(stderr, "longhaul: no wake-up\n");
  thread_.join();
}

ForwarderReport Forwarder::report() const {
  const std::lock_guard lock{guard_};
  ForwarderReport report = report_;
  for (int from = 0; from < settings_.wan.sites; ++from)
    for (int to = 0; to < settings_.wan.sites; ++to)
      report.paths.push_back(model_.counters(from, to));
  return report;
}

std::string Forwarder::problem() const {
  const std::lock_guard lock{guard_};
  return problem_;
}

void Forwarder::run() {
  // A router does not wait for a processor: without priority, delays would hold other programs'
  // time.
  sched_param priority{};
  priority.sched_priority = 1;
  realtime_ = ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &priority) == 0;
  try {
    while (!stop_) {
      std::optional<Duration> next;
      bool moved = false;
      {
        const std::lock_guard lock{guard_};
        moved = take_in();
        moved = put_out(wall_time()) || moved;
        next = model_.next_event();
        report_.busy = clock_now(CLOCK_THREAD_CPUTIME_ID);
      }
      if (!moved) wait(next, wall_time());
    }
  } catch (const std::exception& error) {
    const std::lock_guard lock{guard_};
    problem_ = error.what();
  }
}

Frame Forwarder::empty_frame() {
  if (spare_.empty()) return Frame(TunDevice::kLargest);
  Frame frame = std::move(spare_.back());
  spare_.pop_back();
  frame.resize(TunDevice::kLargest);
  return frame;
}

void Forwarder::recycle(Frame frame) {
  if (frame.capacity() < TunDevice::kLargest || spare_.size() >= kSpareFrames) return;
  spare_.push_back(std::move(frame));
}

bool Forwarder::take_in() {
  bool moved = false;
  for (std::size_t from = 0; from < devices_.size(); ++from) {
    for (int i = 0; i < kBatch; ++i) {
      Frame frame = empty_frame();
      frame.resize(devices_[from].read(frame.bytes()));
      const std::size_t size = frame.bytes().size();
      const FrameRoute route = route_of(frame.bytes(), settings_.wan.sites);
      if (route.site < 0) {
        report_.foreign += size > 0;
        recycle(std::move(frame));
        if (size == 0) break;
        continue;
      }
      moved = true;
      if (size <= kSmall) {
        Frame copy = Frame::copy_of(frame.bytes());
        recycle(std::exchange(frame, std::move(copy)));
      }
      // Not before it was read: a time from before the loop may be older than the packet.
      model_.offer(wall_time(), static_cast<int>(from), route.site, Bytes{route.wire_bytes},
                   std::move(frame));
    }
  }
  return moved;
}

bool Forwarder::put_out(Duration time) {
  bool moved = false;
  for (int i = 0; i < kBatch; ++i) {
    std::optional<WanModel::Delivery> next = model_.take_due(time);
    if (!next) break;
    moved = true;
    report_.lateness.add(wall_time() - next->due);
    if (!devices_[static_cast<std::size_t>(next->site)].write(next->frame.bytes()))
      ++report_.refused;
    recycle(std::move(next->frame));
  }
  return moved;
}

void Forwarder::wait(std::optional<Duration> next, Duration time) const {
  itimerspec alarm{};
  if (next) {
    const Duration until = *next - settings_.spin;
    if (until <= time) return;  // polls until it is due
    alarm.it_value.tv_sec = until / 1s;
    alarm.it_value.tv_nsec = (until % 1s).count();
  }
  check_call(::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr), "timerfd");
  epoll_event event{};
  if (::epoll_wait(poll_.get(), &event, 1, -1) < 0 && errno != EINTR) check_call(-1, "epoll");
}

}  // namespace longhaul::wan_emulator
