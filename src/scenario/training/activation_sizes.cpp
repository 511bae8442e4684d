#include "scenario/training/activation_sizes.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "base/kept_share.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::int64_t kHeaderOfLargest = 12;  ///< of a message of `topk`
constexpr std::int64_t kNumbersOfScale = 128;  ///< that share 4 bytes, of int8

std::int64_t bytes_of_largest(std::int64_t numbers, double keep) {
  const std::int64_t kept = blocks_to_keep(numbers, keep, 1);
  if (kept == 0) return kHeaderOfLargest;
  const double share = static_cast<double>(kept) / static_cast<double>(numbers);
  return kHeaderOfLargest + 2 * kept +
         std::llround(static_cast<double>(kept) * mean_gap_bytes(share));
}

}  // namespace

Bytes activation_bytes(const ActivationCompression& how, std::int64_t numbers) {
  switch (how.format) {
    case ActivationFormat::f32: return Bytes{4 * numbers};
    case ActivationFormat::bf16: return Bytes{2 * numbers};
    case ActivationFormat::int8:
      return Bytes{numbers + (numbers + kNumbersOfScale - 1) / kNumbersOfScale * 4};
    case ActivationFormat::topk: break;
  }
  return Bytes{bytes_of_largest(numbers, how.keep)};
}

std::string_view why_no_activations(const Scenario& scenario) {
  if (!scenario.model) return "without a [model] no one knows how many there are";
  if (scenario.parallel.stages == 1) return "one stage sends none";
  if (scenario.parallel.tensor > 1) return "ranks of a stage each send a part of them";
  if (scenario.parallel.gradient_sync != GradientSync::compressed)
    return "they are compressed beside gradient_sync = \"compressed\" alone";
  return "";
}

void send_activations_as(Scenario& scenario, const ActivationCompression& how) {
  scenario.train.activations = how;
  const Model& model = *scenario.model;
  const std::vector<int>& batches = scenario.train.batch;
  const auto size_of = [&](std::int64_t samples) {
    return activation_bytes(how, samples * model.sequence_length * model.hidden);
  };
  const int largest = batches.empty() ? model.microbatch_size : std::ranges::max(batches);
  std::ranges::fill(scenario.costs.message, size_of(largest));
  for (std::size_t r = 0; r < scenario.replica_costs.size(); ++r)
    std::ranges::fill(scenario.replica_costs[r].message,
                      size_of(batches.empty() ? model.microbatch_size : batches[r]));
}

}  // namespace longhaul::scenario
