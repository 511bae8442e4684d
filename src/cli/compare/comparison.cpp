#include "cli/compare/comparison.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace longhaul::cli {
namespace {

Verdict verdict_of(const Interval& ratio, double at_least) {
  if (ratio.high < 1 - at_least) return Verdict::faster;
  return ratio.low > 1 + at_least ? Verdict::slower : Verdict::not_distinguishable;
}

Verdict verdict_of(double ratio, double at_least) {
  return verdict_of(Interval{ratio, ratio}, at_least);
}

SideSample side_of(std::span<const NamedSample> runs) {
  SideSample side{runs.front().name, {}, {}};
  std::vector<double> all;
  for (const NamedSample& run : runs) {
    all.insert(all.end(), run.times_ns.begin(), run.times_ns.end());
    side.run_medians_ns.push_back(summarize(run.times_ns).median);
  }
  side.iterations = summarize(all);
  return side;
}

/// By the iterations of two runs alone.
void judge_iterations(Comparison& result, const std::vector<double>& a,
                      const std::vector<double>& b, double at_least) {
  result.ratio = ratio_of(a, b);
  if (!result.ratio.interval) {
    result.reason = fmt::format("too few samples: {} and {}, 4 and 4 can tell", a.size(), b.size());
    return;
  }
  const Verdict told = verdict_of(*result.ratio.interval, at_least);
  const double medians = result.b.iterations.median / result.a.iterations.median;
  if (told == Verdict::not_distinguishable || told == verdict_of(medians, 0))
    result.verdict = told;
  else
    result.reason = "pairs and medians disagree: the samples are of different shapes";
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

Comparison compare(std::span<const NamedSample> a, std::span<const NamedSample> b, bool is_measured,
                   double at_least) {
  Comparison result;
  result.a = side_of(a);
  result.b = side_of(b);
  if (result.is_of_runs()) {
    result.ratio = ratio_of_runs(result.a.run_medians_ns, result.b.run_medians_ns);
    result.verdict = verdict_of(*result.ratio.interval, at_least);
  } else if (is_measured) {
    judge_iterations(result, a.front().times_ns, b.front().times_ns, at_least);
  } else {
    result.ratio = ratio_of(a.front().times_ns, b.front().times_ns);
    result.verdict = verdict_of(result.ratio.estimate, at_least);
  }
  return result;
}

double at_least_of(const std::string& text) {
  if (text.empty()) return 0;
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc{} || rest + 1 != end || *rest != '%' || !(percent >= 0 && percent < 100))
    fail("--at-least {} is no percentage (from 0% to below 100%). Write --at-least 1%.", text);
  return percent / 100;
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
