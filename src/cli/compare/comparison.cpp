#include "cli/compare/comparison.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace longhaul::cli {
namespace {

Verdict verdict_of(double low, double high) {
  if (high < 1) return Verdict::faster;
  return low > 1 ? Verdict::slower : Verdict::not_distinguishable;
}

/// "12: latency = "10ms" | latency = "20ms"" of the first line that differs.
Difference first_difference(const std::string& a, const std::string& b) {
  std::istringstream ours{a}, theirs{b};
  std::string left, right;
  for (int line = 1;; ++line) {
    const bool more_left = static_cast<bool>(std::getline(ours, left));
    const bool more_right = static_cast<bool>(std::getline(theirs, right));
    if (!more_left) left = "(ends)";
    if (!more_right) right = "(ends)";
    if (left != right || !(more_left || more_right))
      return {fmt::format("scenario, from line {} on", line), left, right};
  }
}

/// More than one process and half as many again: another program was at work.
bool differ_in_load(const ComparedRun& a, const ComparedRun& b) {
  if (!a.load_average || !b.load_average) return false;
  const auto [low, high] = std::minmax(*a.load_average, *b.load_average);
  return high > low + 1 && high > 1.5 * low;
}

struct Expectation {
  const char* word;
  std::vector<Verdict> verdicts;
};

const std::array<Expectation, 5>& expectations() {
  using enum Verdict;
  static const std::array<Expectation, 5> all{{{"faster", {faster}},
                                               {"slower", {slower}},
                                               {"not-distinguishable", {not_distinguishable}},
                                               {"not-faster", {slower, not_distinguishable}},
                                               {"not-slower", {faster, not_distinguishable}}}};
  return all;
}

}  // namespace

Comparison compare(const NamedSample& a, const NamedSample& b, bool is_measured) {
  Comparison result;
  result.a_name = a.name;
  result.b_name = b.name;
  result.a = summarize(a.times_ns);
  result.b = summarize(b.times_ns);
  result.ratio = ratio_of(a.times_ns, b.times_ns);
  if (!is_measured) {
    result.verdict = verdict_of(result.ratio.estimate, result.ratio.estimate);
    return result;
  }
  if (!result.ratio.interval) {
    result.reason =
        fmt::format("too few samples: {} and {}, 4 and 4 can tell", result.a.n, result.b.n);
    return result;
  }
  const Verdict told = verdict_of(result.ratio.interval->low, result.ratio.interval->high);
  const double medians = result.b.median / result.a.median;
  if (told == Verdict::not_distinguishable || told == verdict_of(medians, medians))
    result.verdict = told;
  else
    result.reason = "pairs and medians disagree: the samples are of different shapes";
  return result;
}

std::vector<Difference> differences_of(const ComparedRun& a, const ComparedRun& b) {
  const auto numbers = [](const ComparedRun& run) {
    return run.is_measured ? "measured" : "simulated";
  };
  if (a.is_measured != b.is_measured)
    fail(
        "{} is {} and {} is {} (a prediction has no noise: `difference %` of a run's own record "
        "says how far it is off). Compare like with like.",
        a.source, numbers(a), b.source, numbers(b));
  if (a.time_scale != b.time_scale)
    fail(
        "{} was played at time_scale {} and {} at {} (what a machine adds does not scale with "
        "it). Run both at one time_scale.",
        a.source, a.time_scale, b.source, b.time_scale);
  std::vector<Difference> found;
  if (a.scenario != b.scenario) found.push_back(first_difference(a.scenario, b.scenario));
  for (const auto& [name, value] : a.conditions) {
    const auto other = std::ranges::find(b.conditions, name, [](const auto& c) { return c.first; });
    if (other != b.conditions.end() && other->second != value)
      found.push_back({name, value, other->second});
  }
  if (differ_in_load(a, b))
    found.push_back({"load average", fmt::format("{:.1f}", *a.load_average),
                     fmt::format("{:.1f}", *b.load_average)});
  return found;
}

bool holds(const std::string& expected, Verdict verdict) {
  std::vector<std::string> known;
  for (const Expectation& expectation : expectations()) {
    if (expectation.word == expected)
      return std::ranges::find(expectation.verdicts, verdict) != expectation.verdicts.end();
    known.emplace_back(expectation.word);
  }
  fail("--expect {}: no such verdict. {}", expected, suggestion(expected, known));
}

}  // namespace longhaul::cli
