#pragma once

#include <optional>
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "comm/group/communicator.hpp"

namespace longhaul::harness {

/// When a sample is large enough (Hoefler and Belli, SC 2015, rules 5 and 9): as soon as the 95%
/// interval of its median is narrower than `width` times the median, at least `least` and at most
/// `most` values. With width 0 the number is fixed, least == most.
struct StoppingRule {
  double width = 0;
  int least = 0;
  int most = 0;
  [[nodiscard]] bool is_fixed() const { return width == 0; }
};

/// Values of --confidence ("5%"; empty: fixed) and --max-iterations. `iterations` is what the run
/// has without them, the least with them; below 6 values no interval exists, so 6 are the least.
/// Throws Error that names the option. `unit` is what is counted: "iterations", "samples".
[[nodiscard]] StoppingRule stopping_rule(const std::string& confidence, std::optional<int> most,
                                         int iterations, const std::string& unit = "iterations");

/// Is the rule met by so many values, whatever comes?
[[nodiscard]] bool is_enough(const StoppingRule& rule, std::span<const double> sample);

/// Collective, with the same answer on every rank: true where the run goes on after `done` values.
/// Rank 0 decides by its sample. Where the number is fixed or out of the rule's bounds nothing is
/// sent.
[[nodiscard]] bool goes_on(const StoppingRule& rule, int done, std::span<const double> sample,
                           const comm::Communicator& world);

/// Why a sample ended, for records: {"reason": "fixed number" | "narrow enough" | "at most so many"
/// | "changed", "n", "width_percent"}. A part of a sample that changes of links or order ended has
/// met no rule.
[[nodiscard]] nlohmann::ordered_json stopped_json(const StoppingRule& rule,
                                                  std::span<const double> sample);
/// The rule itself, for records.
[[nodiscard]] nlohmann::ordered_json rule_json(const StoppingRule& rule);
/// A line for people where a sample ended at `most` without being narrow enough, else nothing.
[[nodiscard]] std::string stopping_note(const std::string& name, const StoppingRule& rule,
                                        std::span<const double> sample);

}  // namespace longhaul::harness
