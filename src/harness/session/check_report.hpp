#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/options.hpp"
#include "engine/ranks.hpp"
#include "plan/plan.hpp"
#include "training/gradient_check.hpp"

namespace longhaul::harness {

/// Collective. The wrong messages of all ranks, in words, in order of ranks: receiver, leg, sender,
/// and the message that was expected. On rank 0; the first few.
[[nodiscard]] std::vector<std::string> gather_wrong_messages(
    const engine::Ranks& ranks, const Plan& plan, const std::vector<engine::WrongMessage>& mine);

/// A line for each rank that has wrong tensors, with the worst of them: "iteration 2, rank 3 (west,
/// stage 3): layer 5 attention.qkv: gradient differs by 0.31 (1e-05 is allowed)".
[[nodiscard]] std::vector<std::string> lines_of(const Plan& plan, int iteration,
                                                const std::vector<training::WrongTensor>& wrong);

/// "ok", or what is wrong: "2 lost, 1 mixed up".
[[nodiscard]] std::string check_text(const engine::Checks& checks);
/// All counts, under the names of the record.
[[nodiscard]] nlohmann::ordered_json checks_json(const engine::Checks& checks);
/// For people: what went over relays, and each message that was found wrong.
[[nodiscard]] std::string message_notes(const std::string& schedule, const engine::Checks& checks,
                                        const std::vector<std::string>& wrong_messages);

}  // namespace longhaul::harness
