#include "profile/explanation.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/index.hpp"

namespace longhaul::profile {
namespace {

using scenario::NeededOperator;

/// The sizes of a shape: words that have one.
std::string sizes_alone(std::string_view shape) {
  std::string sizes;
  while (!shape.empty()) {
    const std::size_t end = std::min(shape.find(' '), shape.size());
    const std::string_view word = shape.substr(0, end);
    shape.remove_prefix(std::min(end + 1, shape.size()));
    if (word.find('=') == std::string_view::npos) continue;
    if (!sizes.empty()) sizes += ' ';
    sizes += word;
  }
  return sizes;
}

std::string block_of_trace(const std::string& block) {
  return block == "D" || block == "W" ? "B" : block == "R" ? "F" : block;
}

/// Of block, operator and sizes; without sizes where the trace has other words for them.
using OperatorKey = std::tuple<std::string, std::string, std::string>;

OperatorKey key_of_operator(const std::string& block, const std::string& operation,
                            std::string_view shape) {
  const bool product = operation == "gemm" || operation == "batched_gemm";
  return {block_of_trace(block), operation, product ? sizes_alone(shape) : std::string{}};
}

struct Both {
  std::vector<const NeededOperator*> needed;
  std::vector<Duration> runs;
  std::string shape;  ///< of the first
};

std::optional<Duration> predicted_time(const std::vector<const NeededOperator*>& needed,
                                       const scenario::ProfileTable* profile) {
  if (profile == nullptr || needed.empty()) return std::nullopt;
  Duration sum{};
  int calls = 0;
  for (const NeededOperator* each : needed) {
    const scenario::ProfileRow* const row = profile->find_anywhere(
        {each->part, each->block, each->operation, each->shape, each->type, 1, {}, 0});
    if (row == nullptr) return std::nullopt;
    sum += row->median * each->calls;
    calls += each->calls;
  }
  return sum / calls;
}

ExplanationStatus status_of(const ExplainedOperator& of, bool is_needed, double tolerance) {
  if (!is_needed) return ExplanationStatus::unpredicted;
  if (!of.measured) return ExplanationStatus::missing;
  if (!of.predicted) return ExplanationStatus::no_time;
  const auto measured = static_cast<double>(of.measured->count());
  const auto predicted = static_cast<double>(of.predicted->count());
  if (measured > (1 + tolerance) * predicted) return ExplanationStatus::slower;
  return measured < (1 - tolerance) * predicted ? ExplanationStatus::faster
                                                : ExplanationStatus::as_predicted;
}

ExplainedOperator explained_operator(const OperatorKey& key, Both& both,
                                     const scenario::ProfileTable* profile, double tolerance) {
  ExplainedOperator each;
  each.block = std::get<0>(key);
  each.operation = std::get<1>(key);
  each.shape = both.shape;
  for (const NeededOperator* of : both.needed) each.calls += of->calls;
  each.predicted = predicted_time(both.needed, profile);
  each.runs = both.runs.size();
  if (!both.runs.empty()) {
    std::ranges::sort(both.runs);
    each.measured = both.runs[(both.runs.size() - 1) / 2];
  }
  each.status = status_of(each, !both.needed.empty(), tolerance);
  return each;
}

/// Kernels of all streams together: how long one ran at least, and the longest time without any.
void measure_waits(const KinetoTrace& trace, Explanation& explanation) {
  std::vector<std::pair<Duration, Duration>> spans;
  for (const OperatorRun& run : trace.runs)
    for (const KernelRun& kernel : run.kernels)
      spans.emplace_back(kernel.start, kernel.start + kernel.length);
  std::ranges::sort(spans);
  Duration end = spans.empty() ? Duration{} : spans.front().first;
  for (const auto& [start, until] : spans) {
    explanation.longest_wait = std::max(explanation.longest_wait, start - end);
    explanation.busy += std::max(Duration{}, until - std::max(start, end));
    end = std::max(end, until);
  }
  explanation.span = trace.end - trace.begin;
}

}  // namespace

Explanation explained(const KinetoTrace& trace, const std::vector<NeededOperator>& needed,
                      const scenario::ProfileTable* profile, double tolerance) {
  std::map<OperatorKey, Both> all;
  for (const NeededOperator& each : needed) {
    Both& both = all[key_of_operator(each.block, each.operation, each.shape)];
    if (both.needed.empty()) both.shape = each.shape;
    both.needed.push_back(&each);
  }
  for (const OperatorRun& run : trace.runs) {
    Both& both = all[key_of_operator(run.block, run.operation, run.shape)];
    if (both.needed.empty() && both.runs.empty()) both.shape = run.shape;
    both.runs.push_back(run.length());
  }
  Explanation explanation;
  explanation.orphans = trace.orphans;
  for (auto& [key, both] : all)
    explanation.operators.push_back(explained_operator(key, both, profile, tolerance));
  std::ranges::stable_sort(
      explanation.operators, std::ranges::greater{}, [](const ExplainedOperator& each) {
        const Duration one = each.measured.value_or(each.predicted.value_or(Duration{}));
        const auto times =
            static_cast<std::int64_t>(std::max<std::size_t>(each.runs, to_size(each.calls)));
        return one * times;
      });
  measure_waits(trace, explanation);
  return explanation;
}

}  // namespace longhaul::profile
