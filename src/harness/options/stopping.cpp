#include "harness/options/stopping.hpp"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/statistics/sample.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

constexpr int kLeastForInterval = 6;
constexpr int kMostIterations = 100;

/// "5%" is 0.05.
double width_of(const std::string& text) {
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  const bool is_percentage = error == std::errc{} && rest + 1 == end && *rest == '%';
  if (!is_percentage || !(percent > 0 && percent < 100))
    fail(
        "--confidence {} is no width (the 95% interval of the median is to be narrower than that "
        "percentage of it: above 0%, below 100%). Write --confidence 5%.",
        text);
  return percent / 100;
}

bool is_narrow(const StoppingRule& rule, std::span<const double> sample) {
  const auto width = summarize(sample).relative_width();
  return width && *width < rule.width;
}

}  // namespace

StoppingRule stopping_rule(const std::string& confidence, std::optional<int> most, int iterations,
                           const std::string& unit) {
  if (confidence.empty()) {
    if (most)
      fail(
          "--max-{} {} has no effect without --confidence (the number of {} is fixed). Give "
          "--confidence 5%, or --{} alone.",
          unit, *most, unit, unit);
    return {0, iterations, iterations};
  }
  StoppingRule rule{width_of(confidence), std::max(iterations, kLeastForInterval), 0};
  rule.most = most.value_or(std::max(rule.least, kMostIterations));
  if (rule.most < rule.least)
    fail(
        "--max-{} {} is less than the least number of {}, {} (fewer than {} have no interval). "
        "Give more, or a smaller --{}.",
        unit, rule.most, unit, rule.least, kLeastForInterval, unit);
  return rule;
}

bool is_enough(const StoppingRule& rule, std::span<const double> sample) {
  const auto n = static_cast<int>(sample.size());
  if (n < rule.least) return false;
  return n >= rule.most || is_narrow(rule, sample);
}

bool goes_on(const StoppingRule& rule, int done, std::span<const double> sample,
             const comm::Communicator& world) {
  if (done < rule.least) return true;
  if (done >= rule.most) return false;
  const bool enough = world.rank() == 0 && is_narrow(rule, sample);
  return world.broadcast(enough ? "stop" : "go on") == "go on";
}

ordered_json stopped_json(const StoppingRule& rule, std::span<const double> sample) {
  const auto width = summarize(sample).relative_width();
  const auto n = static_cast<int>(sample.size());
  const char* reason = "changed";
  if (rule.is_fixed() && n >= rule.most)
    reason = "fixed number";
  else if (!rule.is_fixed() && n >= rule.least && is_narrow(rule, sample))
    reason = "narrow enough";
  else if (n >= rule.most)
    reason = "at most so many";
  return {{"reason", reason},
          {"n", n},
          {"width_percent", width ? ordered_json(100 * *width) : ordered_json(nullptr)}};
}

ordered_json rule_json(const StoppingRule& rule) {
  if (rule.is_fixed()) return {{"rule", "fixed number"}, {"n", rule.most}};
  return {{"rule", "95% interval of the median narrower than"},
          {"width_percent", 100 * rule.width},
          {"least", rule.least},
          {"most", rule.most}};
}

std::string stopping_note(const std::string& name, const StoppingRule& rule,
                          std::span<const double> sample) {
  if (rule.is_fixed() || is_narrow(rule, sample)) return "";
  const auto width = summarize(sample).relative_width();
  return fmt::format("! {}: stopped after {}, the 95% interval is {:.1f}% of the median wide\n",
                     name, sample.size(), 100 * width.value_or(0));
}

}  // namespace longhaul::harness
