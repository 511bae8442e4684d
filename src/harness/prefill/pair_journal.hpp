#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/prefill/prefill_run.hpp"

namespace longhaul::harness {

/// What the journal of a run keeps of a pair that is over, so that a run which is cut short goes on
/// after it: all but what is predicted of it, which follows from the plan.
[[nodiscard]] nlohmann::json entry_of_pair(int pair, const StretchPair& played);

/// The pairs in a journal, from 0 on without a gap; of one that was played again the last.
[[nodiscard]] std::vector<StretchPair> pairs_of(const std::vector<nlohmann::json>& journal);

/// One part of a run: when and by what it was begun, and how many pairs were over.
[[nodiscard]] nlohmann::json part_entry(const std::string& command_line, int finished_before);
/// All parts in a journal; null where the run has but one.
[[nodiscard]] nlohmann::json parts_of(const std::vector<nlohmann::json>& journal);

}  // namespace longhaul::harness
