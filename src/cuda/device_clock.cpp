#include "cuda/device_clock.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "cuda/spin.hpp"

namespace longhaul::cuda {
namespace {

using namespace std::chrono_literals;

/// The best of them count: more than some only where they are quick.
constexpr unsigned kRounds = 100, kFewestRounds = 4;
constexpr Duration kBudget = 3ms;
/// Where others need the processors, all of the first rounds may be slow: on, until one was not.
constexpr Duration kSharp = 20us, kMostBudget = 30ms;
constexpr unsigned kSteps = 8;       ///< of the clock, for its tick
constexpr Duration kPatience = 60s;  ///< of a round: a device that others use may take long
/// Answers come within microseconds. Where they do not, others need the processor.
constexpr Duration kAnswerSoon = 100us;
/// Crystals differ by far less; more would be a mistake of the measurement.
constexpr double kMostDrift = 1e-3;

std::int64_t as_signed(std::uint64_t stamp) { return static_cast<std::int64_t>(stamp); }

/// The interval of host - device that all rounds allow, in nanoseconds.
struct Bounds {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

/// A round: the device's stamp was taken between the two looks of the host, up to `tick` after what
/// it says.
void narrow(Bounds& bounds, TimePoint before, std::uint64_t stamp, TimePoint after,
            std::int64_t tick) {
  bounds.low = std::max(bounds.low, before.count() - as_signed(stamp) - tick);
  bounds.high = std::min(bounds.high, after.count() - as_signed(stamp));
}

std::uint64_t wait_for_answer(std::uint64_t& answer) {
  const std::atomic_ref<std::uint64_t> there{answer};
  const TimePoint give_up = now() + kPatience;
  for (const TimePoint began = now();;) {
    if (const std::uint64_t stamp = there.load(std::memory_order_acquire); stamp != 0) return stamp;
    const TimePoint at = now();
    if (at - began > kAnswerSoon) std::this_thread::sleep_for(kAnswerSoon);
    if (at < give_up) continue;
    throw Error{
        fmt::format(
            "a device did not answer within {} s when its clock was asked (it runs something "
            "else all the time, or what it was given before has failed or waits for ever). "
            "nvidia-smi shows who uses it; end that, or share it with MPS or "
            "--ranks-per-process.",
            kPatience / 1s),
        ExitCode::run_failed};
  }
}

}  // namespace

DeviceClock& DeviceClock::of(int index) {
  static std::mutex mutex;
  // Never destroyed: when the process ends, CUDA may have ended before.
  static auto& clocks = *new std::map<int, std::unique_ptr<DeviceClock>>;
  const std::scoped_lock lock{mutex};
  std::unique_ptr<DeviceClock>& clock = clocks[index];
  if (!clock) clock = std::make_unique<DeviceClock>(index);
  return *clock;
}

DeviceClock::DeviceClock(int index)
    : index_{index},
      answers_{(use_device(index), kRounds + 2)},
      stream_{Urgency::high},
      first_{measure()},
      last_{first_},
      largest_error_{last_.error} {}

DeviceClock::Fix DeviceClock::measure() {
  use_device(index_);
  std::ranges::fill(answers_.span(), 0);
  std::uint64_t& ask = answers_[kRounds];
  std::uint64_t& tick = answers_[kRounds + 1];
  measure_tick(&tick, kSteps, stream_.get());
  answer_rounds(&ask, answers_.data(), kRounds, static_cast<std::uint64_t>(kPatience.count()),
                stream_.get());
  const std::uint64_t tick_ns = wait_for_answer(tick);
  Fix fix;
  Bounds bounds;
  const TimePoint began = now();
  for (unsigned round = 1; round <= kRounds; ++round) {
    const TimePoint before = now();
    if (round > kFewestRounds) {
      const bool sharp = bounds.high - bounds.low <= kSharp.count();
      if (before - began > (sharp ? kBudget : kMostBudget)) break;
    }
    std::atomic_ref{ask}.store(round, std::memory_order_release);
    fix.device = wait_for_answer(answers_[round - 1]);
    narrow(bounds, before, fix.device, now(), as_signed(tick_ns));
  }
  std::atomic_ref{ask}.store(kRounds, std::memory_order_release);
  (void)wait_for_answer(answers_[kRounds - 1]);  // the kernel is done with the memory
  // Rounds that contradict each other (a clock was set meanwhile) leave less than nothing open.
  const std::int64_t open = std::abs(bounds.high - bounds.low);
  fix.tick = Duration{as_signed(tick_ns)};
  fix.error = Duration{(open + fix.tick.count()) / 2 + 1};
  fix.host = Duration{as_signed(fix.device) + bounds.low +
                      (bounds.high - bounds.low + fix.tick.count()) / 2};
  return fix;
}

void DeviceClock::refresh(Duration age) {
  const std::scoped_lock lock{mutex_};
  if (now() - last_.host < age) return;
  const Fix fix = measure();
  const Duration missed = host_of(fix.device) - fix.host;
  largest_error_ = std::max(largest_error_, fix.error + Duration{std::abs(missed.count())});
  drift_ = drift_between(first_, fix);
  last_ = fix;
}

/// The drift nearest to none among those that the errors of both allow.
double DeviceClock::drift_between(const Fix& first, const Fix& last) {
  const auto host = static_cast<double>((last.host - first.host).count());
  if (host <= 0) return 0;
  const auto device = static_cast<double>(last.device - first.device);
  const double drift = device / host - 1.0;
  const double error = static_cast<double>((first.error + last.error).count()) / host;
  const double sure = std::max(0.0, std::abs(drift) - error);
  return std::copysign(std::min(sure, kMostDrift), drift);
}

TimePoint DeviceClock::host_of(std::uint64_t stamp) const {
  const auto since = static_cast<double>(as_signed(stamp - last_.device));
  return last_.host + Duration{static_cast<std::int64_t>(since / (1.0 + drift_))};
}

TimePoint DeviceClock::to_host(std::uint64_t stamp) const {
  const std::scoped_lock lock{mutex_};
  return host_of(stamp);
}

std::uint64_t DeviceClock::to_device(TimePoint host) const {
  const std::scoped_lock lock{mutex_};
  const auto since = static_cast<double>((host - last_.host).count());
  return last_.device +
         static_cast<std::uint64_t>(static_cast<std::int64_t>(since * (1.0 + drift_)));
}

Duration DeviceClock::error() const {
  const std::scoped_lock lock{mutex_};
  return last_.error;
}

Duration DeviceClock::largest_error() const {
  const std::scoped_lock lock{mutex_};
  return largest_error_;
}

Duration DeviceClock::tick() const {
  const std::scoped_lock lock{mutex_};
  return last_.tick;
}

double DeviceClock::drift() const {
  const std::scoped_lock lock{mutex_};
  return drift_;
}

}  // namespace longhaul::cuda
