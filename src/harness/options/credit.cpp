#include "harness/options/credit.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/program/command_words.hpp"
#include "base/unit_text.hpp"

namespace longhaul::harness {

Duration credit_of(const std::string& text) {
  const Duration credit = value_of("--credit", [&] { return parse_duration(text); });
  if (credit < Duration::zero())
    fail("--credit {} is negative (no op can be made later). Give 1ms, or 0s.", text);
  return credit;
}

std::string credit_text(const engine::CreditUse& credit) {
  if (credit.credited == 0) return {};
  return fmt::format("credit for lateness: {} in {} of {} ops, {} at most\n", to_text(credit.total),
                     credit.credited, credit.ops, to_text(credit.largest));
}

nlohmann::ordered_json credit_json(const engine::CreditUse& credit) {
  return {{"ops", credit.ops},
          {"credited", credit.credited},
          {"total_ns", credit.total.count()},
          {"largest_ns", credit.largest.count()}};
}

}  // namespace longhaul::harness
