#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/environment/shared_options.hpp"
#include "nn/memory.hpp"
#include "nn/tensor_ops.hpp"
#include "scenario/served_model.hpp"

namespace longhaul::harness {

/// Passes of so many tokens after so many others: all decoder layers of a model, one prompt alone.
struct PrefillTimes {
  int tokens = 0, context = 0;
  std::vector<double> seconds;

  [[nodiscard]] double quantile(double share) const;
};

/// What --prefill and --contexts ask for: each from 1 to 1,048,576, ascending.
struct PrefillLengths {
  std::vector<int> tokens, contexts;
};
/// "16,64,256" each; `contexts` may be empty. Throws Error that names the option.
[[nodiscard]] PrefillLengths prefill_lengths(const std::string& tokens,
                                             const std::string& contexts);

/// `samples` passes of each length, in turn, after one that does not count; nothing is kept of
/// them. Then those of each length after each context: the pass alone, and in each layer what
/// attention of context and pass together takes longer than that of either; each of these is
/// measured, and a sample is their sum. Throws Error where heads do not make up the hidden size, or
/// outputs are no numbers.
[[nodiscard]] std::vector<PrefillTimes> time_prefills(nn::TensorOps& math, nn::DeviceMemory& memory,
                                                      const ServedDimensions& model,
                                                      const PrefillLengths& lengths, int samples);

/// What `prefill.profile` of a scenario reads: medians of prompts without a context; `about` stands
/// above them.
[[nodiscard]] std::string prefill_csv(const std::vector<PrefillTimes>& times,
                                      const std::string& about);
[[nodiscard]] nlohmann::ordered_json prefill_times_json(const std::vector<PrefillTimes>& times);
[[nodiscard]] std::string prefill_times_table(const std::vector<PrefillTimes>& times);

/// `bench_profile --prefill`: times the model of a scenario's first [prefill], prints a table or
/// the record, and writes prefill.csv and record.json to options.out, where it is given.
void profile_prefills(nn::TensorOps& math, const SharedOptions& options,
                      const std::string& scenario, const PrefillLengths& lengths, int samples);

}  // namespace longhaul::harness
