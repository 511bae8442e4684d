#include "harness/records/sample_report.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/unit_text.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

ordered_json whole(double ns) { return std::llround(ns); }

}  // namespace

void add_sample(ordered_json& json, const std::vector<double>& times_ns,
                const SampleSummary& summary, std::optional<double> tokens_per_second,
                std::int64_t typical_ns) {
  const auto& interval = summary.median_interval;
  json["measured_median_low_ns"] = interval ? whole(interval->low) : ordered_json(nullptr);
  json["measured_median_high_ns"] = interval ? whole(interval->high) : ordered_json(nullptr);
  json["measured_mean_ns"] = whole(summary.mean);
  json["measured_max_ns"] = whole(summary.max);
  const Outliers& outliers = summary.outliers;
  json["outliers"] = {{"rule", kOutlierRule},
                      {"n", outliers.positions.size()},
                      {"fence_low_ns", whole(outliers.fences.low)},
                      {"fence_high_ns", whole(outliers.fences.high)},
                      {"samples", outliers.positions}};
  if (!tokens_per_second) return;
  std::vector<double> rates;
  for (const double ns : times_ns)
    rates.push_back(*tokens_per_second * static_cast<double>(typical_ns) / ns);
  json["measured_mean_tokens_per_second"] = harmonic_mean(rates);
}

std::string outlier_note(const std::string& name, const std::vector<double>& sample,
                         const SampleSummary& summary) {
  const auto& positions = summary.outliers.positions;
  if (positions.empty()) return "";
  constexpr std::size_t kNamed = 5;
  std::string text =
      fmt::format("{}: {} of {} samples beyond Tukey's fences, kept in all numbers:", name,
                  positions.size(), summary.n);
  for (std::size_t i = 0; i < positions.size() && i < kNamed; ++i)
    text += fmt::format("{} #{} {}", i == 0 ? "" : ",", positions[i],
                        to_text(Duration{std::llround(sample[positions[i]])}));
  if (positions.size() > kNamed) text += ", ...";
  return text + "\n";
}

}  // namespace longhaul::harness
