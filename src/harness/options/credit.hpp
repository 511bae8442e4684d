#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/units.hpp"
#include "engine/credit/shadow_time.hpp"

namespace longhaul::harness {

/// What --credit is for, where programs list it.
inline constexpr const char* kCreditHelp =
    "how much lateness of this host's timers is made up for, of an op 2% at most; 0s: none";

/// Its value; Errors name the option.
[[nodiscard]] Duration credit_of(const std::string& text);

/// How much of it was used: "credit for lateness: 48 ms in 9 of 12 ops, 134 us at most", a line;
/// empty where none was.
[[nodiscard]] std::string credit_text(const engine::CreditUse& credit);
/// The same for records.
[[nodiscard]] nlohmann::ordered_json credit_json(const engine::CreditUse& credit);

}  // namespace longhaul::harness
