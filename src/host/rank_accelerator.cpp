#include "host/rank_accelerator.hpp"

#include <algorithm>

#include "cuda/accelerator.hpp"

namespace longhaul::host {

int accelerator_of(const comm::HostRanks& host_ranks) {
  const int devices = static_cast<int>(cuda::accelerators().size());
  const auto at = std::ranges::find(host_ranks.local(), host_ranks.self());
  const int place = static_cast<int>(at - host_ranks.local().begin());
  const int ranks = host_ranks.local_ranks();
  if (devices == 0) return 0;
  return devices >= ranks ? place : place * devices / ranks;
}

}  // namespace longhaul::host
