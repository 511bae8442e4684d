#pragma once

#include <cstdint>
#include <mutex>

#include "base/clock.hpp"
#include "cuda/handles.hpp"

namespace longhaul::cuda {

/// A device's clock (%globaltimer) against this host's CLOCK_MONOTONIC. Rounds of host, device,
/// host: each says between which two stamps of the host one of the device's lies; what all rounds
/// allow is the offset with its error. Drift comes from offsets of different times: the smallest
/// that their errors allow. One for each device of the process; calls of several threads are in
/// order.
class DeviceClock {
public:
  /// The clock of device `index`, measured if it never was.
  [[nodiscard]] static DeviceClock& of(int index);

  /// Measures again where the last time is `age` ago or longer. Takes about a millisecond, in which
  /// the device should have nothing else to do; never in a running iteration.
  void refresh(Duration age);

  [[nodiscard]] TimePoint to_host(std::uint64_t stamp) const;
  [[nodiscard]] std::uint64_t to_device(TimePoint host) const;

  /// Half of what the rounds leave open, with the tick of the device's clock.
  [[nodiscard]] Duration error() const;
  /// The largest error of all measurements so far, what extrapolation missed by included.
  [[nodiscard]] Duration largest_error() const;
  [[nodiscard]] Duration tick() const;
  [[nodiscard]] double drift() const;  ///< device's nanoseconds per host's, less 1

  explicit DeviceClock(int index);

private:
  struct Fix {
    TimePoint host{};
    std::uint64_t device = 0;
    Duration error{}, tick{};
  };
  [[nodiscard]] Fix measure();
  [[nodiscard]] static double drift_between(const Fix& first, const Fix& last);
  [[nodiscard]] TimePoint host_of(std::uint64_t stamp) const;

  int index_;
  mutable std::mutex mutex_;
  PinnedMemory<std::uint64_t> answers_;  ///< and after them the question and the tick
  Stream stream_;
  Fix first_, last_;
  Duration largest_error_{};
  double drift_ = 0;
};

}  // namespace longhaul::cuda
