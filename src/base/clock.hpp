#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <optional>

#include "base/units.hpp"

namespace longhaul {

/// A stamp of this host's CLOCK_MONOTONIC, in nanoseconds since its epoch; of the thread's virtual
/// clock, where it has one.
using TimePoint = Duration;

inline constexpr TimePoint kNever = TimePoint::max();

[[nodiscard]] TimePoint now();

/// Timers of this thread fire as precisely as the kernel can (the default slack is 50 us), and it
/// asks for short slices of the processor, so that where the kernel knows of them (Linux 6.12) it
/// gets its turn soon after it wakes. Needs no privilege.
void make_timers_precise();

/// Decides what several threads ask for, where it matters who asks in the same instant: of those
/// that wait for a resource, the first in order of readiness gets it, not the first to ask.
class Arbiter {
public:
  Arbiter() = default;
  virtual ~Arbiter() = default;
  Arbiter(const Arbiter&) = delete;
  Arbiter& operator=(const Arbiter&) = delete;

  /// In this order an instant ends: lanes go on whose order may be passed, sources say what their
  /// lanes do next, resources serve in order of readiness, resources choose, versions are noted.
  enum class Step : std::uint8_t { order, source, request, choice, version };
  /// Of its open requests the one to decide first: since when it is ready (of a choice, its rank),
  /// and its number, which decides between equals.
  struct Request {
    Step step = Step::request;
    std::int64_t first = 0, second = 0;
    std::uint32_t op = 0;
    friend auto operator<=>(const Request&, const Request&) = default;
  };
  [[nodiscard]] virtual std::optional<Request> first_request() = 0;
  /// Decides that one, and wakes who may go on thereby.
  virtual void decide_first() = 0;
};

/// Time that passes only while all threads that live in it sleep. An instant is over when none of
/// them has anything left to do in it.
class VirtualClock {
public:
  VirtualClock() = default;
  virtual ~VirtualClock() = default;
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  [[nodiscard]] virtual TimePoint now() const = 0;
  /// Until `until`, or until `word` is not `seen`: the other threads' turn.
  virtual void sleep(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                     TimePoint until) = 0;
  /// Asked for decisions whenever no thread has anything left to do in an instant: one at a time,
  /// the first of all arbiters', for it may give others something to do.
  virtual void add(Arbiter& arbiter) = 0;
  virtual void remove(Arbiter& arbiter) = 0;
};

/// The clock that this thread lives by; nullptr: the host's.
[[nodiscard]] VirtualClock* virtual_clock();
void set_virtual_clock(VirtualClock* clock);

}  // namespace longhaul
