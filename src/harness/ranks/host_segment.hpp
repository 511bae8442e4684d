#pragma once

#include <filesystem>

#include "engine/ranks.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::harness {

/// Writes what the ranks of this host did in an iteration into one file: its first rank does.
/// Collective over them. `times` are of this rank's ops, on rank 0's clock; all of the run's hosts
/// have written when rank 0 has heard of all of them.
void write_host_segment(const engine::Ranks& ranks, const Plan& plan, const OpTimes& times,
                        const std::filesystem::path& directory, const IterationKey& key,
                        bool emulates);

}  // namespace longhaul::harness
