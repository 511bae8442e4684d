#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/statistics/sample.hpp"
#include "report/record.hpp"

namespace longhaul::harness {

/// Adds what a record says of a sample of times in ns beyond median, min and p95: the interval of
/// the median (null: too few values for one), the largest, the mean, and the outliers by their
/// position in the sample, which all other numbers contain. Where the rate of an iteration of
/// `typical_ns` is known, the mean rate too: the work of all over the time of all.
void add_sample(nlohmann::ordered_json& json, const std::vector<double>& times_ns,
                const SampleSummary& summary, std::optional<double> tokens_per_second,
                std::int64_t typical_ns);

/// A line for people that names the outliers of a sample; nothing where there are none.
[[nodiscard]] std::string outlier_note(const std::string& name, const std::vector<double>& sample,
                                       const SampleSummary& summary);

}  // namespace longhaul::harness
