#pragma once

#include <optional>
#include <vector>

#include "cuda/device_clock.hpp"
#include "cuda/handles.hpp"
#include "cuda/lane_pace.hpp"
#include "cuda/spin.hpp"

namespace longhaul::cuda {

/// Holds the streams of lanes for what transfers leave of their nominal time (CrossPipe appendix
/// F.1, with the transfer's own time taken off), and tells when, all by the device's stamps. One
/// thread; made after use_device().
class LanePacer {
public:
  /// `at_once`: so many transfers may be between begin() and over().
  LanePacer(int index, std::size_t at_once);

  enum class Transfer : std::uint32_t {};
  /// Call before the work that moves the bytes.
  [[nodiscard]] Transfer begin(cudaStream_t lane);
  /// And after it: the lane stays held until pace.hold after begin(), or after pace.from where
  /// that is earlier. Where the host moves the bytes (staging), it comes after that, on any stream.
  void hold(Transfer transfer, cudaStream_t lane, const LanePace& pace);

  struct Over {
    TimePoint begin{}, transferred{}, over{};
  };
  /// Looks at memory alone. Once: the transfer's number is then used again.
  [[nodiscard]] std::optional<Over> over(Transfer transfer);

private:
  struct TransferStamps {
    Stamps stamps;
    std::uint64_t transferred = 0;
  };
  DeviceClock& clock_;
  PinnedMemory<TransferStamps> slots_;
  std::vector<Transfer> free_;
};

}  // namespace longhaul::cuda
