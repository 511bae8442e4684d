#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/options.hpp"

namespace longhaul::harness {

/// "ok", or what is wrong: "2 lost, 1 mixed up".
[[nodiscard]] std::string check_text(const engine::Checks& checks);
/// All counts, under the names of the record.
[[nodiscard]] nlohmann::ordered_json checks_json(const engine::Checks& checks);
/// For people: what went over relays, and each message that was found wrong.
[[nodiscard]] std::string message_notes(const std::string& schedule, const engine::Checks& checks,
                                        const std::vector<std::string>& wrong_messages);

}  // namespace longhaul::harness
