#pragma once

#include "comm/group/host_ranks.hpp"

namespace longhaul::host {

/// The GPU of this rank, among those that its process sees: one each as long as there are enough,
/// then shared by neighbours, as bind_ranks has it (host/binding.hpp). 0 where there are none.
[[nodiscard]] int accelerator_of(const comm::HostRanks& host_ranks);

}  // namespace longhaul::host
