#include "cuda/lane_pacer.hpp"

#include <atomic>

#include "base/error.hpp"

namespace longhaul::cuda {

LanePacer::LanePacer(int index, std::size_t at_once)
    : clock_{DeviceClock::of(index)}, slots_{at_once} {
  load_spin_kernels();
  for (std::size_t i = at_once; i > 0; --i)
    free_.push_back(Transfer{static_cast<std::uint32_t>(i - 1)});
}

LanePacer::Transfer LanePacer::begin(cudaStream_t lane) {
  LONGHAUL_ASSERT(!free_.empty(), "more than {} transfers at once", slots_.size());
  const Transfer transfer = free_.back();
  free_.pop_back();
  TransferStamps& slot = slots_[index(transfer)];
  slot = {};
  stamp(&slot.stamps.begin, lane);
  return transfer;
}

void LanePacer::hold(Transfer transfer, cudaStream_t lane, const LanePace& pace) {
  TransferStamps& slot = slots_[index(transfer)];
  const std::uint64_t from = pace.from == TimePoint{} ? 0 : clock_.to_device(pace.from);
  stamp(&slot.transferred, lane);
  hold_after(&slot.stamps, from, static_cast<std::uint64_t>(pace.hold.count()), lane);
}

std::optional<LanePacer::Over> LanePacer::over(Transfer transfer) {
  TransferStamps& slot = slots_[index(transfer)];
  const std::uint64_t end = std::atomic_ref{slot.stamps.end}.load(std::memory_order_acquire);
  if (end == 0) return std::nullopt;
  free_.push_back(transfer);
  return Over{clock_.to_host(slot.stamps.begin), clock_.to_host(slot.transferred),
              clock_.to_host(end)};
}

}  // namespace longhaul::cuda
