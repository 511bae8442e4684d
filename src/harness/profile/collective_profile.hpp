#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/collectives/collective_measurement.hpp"

namespace longhaul::harness {

/// Collectives of a model's training over ranks 0 to n - 1 of `ranks`, for n = 2, 4, ... and all of
/// them: all-reduce, all-gather and reduce-scatter as rings, of `sizes` (listed_sizes()) each.
/// None for one rank. Throws Error where a size cannot be played.
[[nodiscard]] std::vector<plan::Collective> profiled_collectives(
    int ranks, const std::vector<std::string>& sizes);

/// Sizes around a message of `boundary` bytes: from a quarter of it (1 KiB at least) to four times
/// it, doubling. With what a table answers beyond its ends, sizes from 1/16 to 16 times are known.
[[nodiscard]] std::vector<std::string> sizes_around(Bytes boundary);

/// Collective: measures them on the ranks as they are, message by message, as `bench_collectives
/// --emulate off` does. Complete on rank 0.
[[nodiscard]] std::vector<CollectiveMeasurement> measure_profiled_collectives(
    engine::Ranks& ranks, const std::vector<plan::Collective>& collectives, int samples,
    const std::function<void(const CollectiveMeasurement&)>& after_each);

/// What `costs.collectives` reads (docs/profile.md): a line each, `nodes` are the hosts on which
/// the members lie. Rank 0's.
[[nodiscard]] std::string collectives_csv(const std::vector<CollectiveMeasurement>& measured,
                                          const engine::Ranks& ranks);

}  // namespace longhaul::harness
