#include "report/page/train_page.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/unit_text.hpp"
#include "base/version.hpp"
#include "report/page/page.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::report {
namespace {

using nlohmann::ordered_json;

constexpr double kNever = std::numeric_limits<double>::infinity();

double number_or(const ordered_json& value, double otherwise) {
  return value.is_number() ? value.get<double>() : otherwise;
}

std::string ns_text(double ns) { return to_text(Duration{std::llround(ns)}); }

/// The runs of one method: medians over its seeds; of what a seed does not reach: never.
struct MethodResult {
  std::string name;
  std::vector<double> times{}, updates{}, losses{};  ///< to the target, to it, at the end
  const ordered_json* first = nullptr;               ///< its first curve
  [[nodiscard]] static double median(std::vector<double> of) {
    std::ranges::sort(of);
    const std::size_t half = of.size() / 2;
    return of.size() % 2 == 1 ? of[half] : (of[half - 1] + of[half]) / 2;
  }
  [[nodiscard]] double time() const { return median(times); }
  [[nodiscard]] double loss() const { return median(losses); }
  /// From one exchange to the next.
  [[nodiscard]] double period() const { return number_or(first->at("period_ns"), kNever); }
  [[nodiscard]] bool reaches() const { return time() < kNever; }
};

const ordered_json& last_loss(const ordered_json& curve) {
  static const ordered_json none;
  const ordered_json& points = curve.at("points");
  return points.empty() ? none : points.back().at(3);
}

/// Exchanges were played, and nothing was learned.
bool is_timed(const ordered_json& record) { return record.at("compute") == "timed"; }

/// By time to the target, those that do not reach it by their last loss; of a timed run by period.
std::vector<MethodResult> results_of(const ordered_json& record) {
  const ordered_json& train = record.at("train");
  std::vector<MethodResult> all;
  for (const ordered_json& curve : train.at("curves")) {
    const std::string name = curve.at("method").get<std::string>();
    auto found = std::ranges::find(all, name, &MethodResult::name);
    if (found == all.end()) found = all.insert(all.end(), MethodResult{name, {}, {}, {}, &curve});
    found->times.push_back(number_or(curve.at("time_to_target_ns"), kNever));
    found->updates.push_back(number_or(curve.at("iterations_to_target"), kNever));
    found->losses.push_back(number_or(last_loss(curve), kNever));
  }
  std::ranges::stable_sort(all, [&](const MethodResult& a, const MethodResult& b) {
    if (is_timed(record)) return a.period() < b.period();
    if (a.reaches() || b.reaches()) return a.time() < b.time();
    return a.loss() < b.loss();
  });
  return all;
}

std::string target_text(const ordered_json& train) {
  const ordered_json& target = train.at("target");
  if (target.is_null()) return {};
  return fmt::format("{} {:g}", target.at("kind").get<std::string>(),
                     target.at("value").get<double>());
}

std::string what_was_asked(const ordered_json& record, std::size_t methods) {
  const ordered_json& train = record.at("train");
  const std::string target = target_text(train);
  return fmt::format(
      "Asked: which of {} trains {} ({}) on {} {}; {}.",
      counted(static_cast<std::int64_t>(methods), "method"),
      record.at("scenario").get<std::string>(), counted(record.at("ranks").get<int>(), "rank"),
      train.at("data").at("name").get<std::string>(),
      target.empty() ? std::string{"to the least validation loss"} : "to " + target + " soonest",
      is_timed(record) ? "their exchanges were played, nothing was learned"
                       : "they were run on ranks");
}

std::string loss_text(double loss) {
  return loss < kNever ? fmt::format("{:.4g}", loss) : std::string{"none (it diverged)"};
}

std::string who_exchanges_soonest(const std::vector<MethodResult>& all) {
  const MethodResult& best = all.front();
  if (best.period() == kNever) return "No method has two exchanges to time.";
  return fmt::format("{} exchanges soonest: {} from one exchange to the next.", best.name,
                     ns_text(best.period()));
}

std::string how_much_later(const std::vector<MethodResult>& all) {
  if (all.size() == 1) return "There is nothing to hold it against: it is the only one.";
  const double best = all[0].period(), second = all[1].period();
  if (second == kNever) return "No other has two exchanges to time.";
  return fmt::format("The second, {}, takes {:.1f}% longer.", all[1].name,
                     100 * (second / best - 1));
}

std::string who_won(const MethodResult& best, const std::string& target) {
  if (best.reaches())
    return fmt::format("{} gets to {} first: {} and {:g} updates (median of {}).", best.name,
                       target, ns_text(best.time()), MethodResult::median(best.updates),
                       counted(std::ssize(best.times), "seed"));
  return fmt::format("{}{} ends with the least validation: {} (median of {}).",
                     target.empty() ? "" : fmt::format("No method gets to {}. ", target), best.name,
                     loss_text(best.loss()), counted(std::ssize(best.losses), "seed"));
}

std::string how_much_sooner(const std::vector<MethodResult>& all) {
  if (all.size() == 1) return "There is nothing to hold it against: it is the only one.";
  const MethodResult &best = all[0], &second = all[1];
  if (!best.reaches())
    return fmt::format("The second, {}, ends with {}.", second.name, loss_text(second.loss()));
  const auto late = std::ranges::count_if(all, [](const auto& each) { return !each.reaches(); });
  std::string text = second.reaches()
                         ? fmt::format("The second, {}, takes {:.1f}% longer", second.name,
                                       100 * (second.time() / best.time() - 1))
                         : fmt::format("No other gets there: the second, {}, ends with {}",
                                       second.name, loss_text(second.loss()));
  if (second.reaches() && late > 0)
    text +=
        fmt::format("; {} {} not get there", counted(late, "method"), late == 1 ? "does" : "do");
  return text + ".";
}

std::string how_true_times_are(const ordered_json& record) {
  double least = kNever, most = -kNever;
  int compared = 0, composed = 0;
  for (const ordered_json& curve : record.at("train").at("curves")) {
    composed += curve.at("kind") == "composed" ? 1 : 0;
    const double predicted = number_or(curve.at("predicted_period_ns"), 0);
    const double period = number_or(curve.at("period_ns"), 0);
    if (predicted <= 0 || period <= 0) continue;
    least = std::min(least, 100 * (period / predicted - 1));
    most = std::max(most, 100 * (period / predicted - 1));
    ++compared;
  }
  std::string text =
      compared == 0 ? std::string{"No time between two exchanges was measured beside a prediction"}
                    : fmt::format(
                          "Measured times between exchanges are {:+.2f} to {:+.2f}% from their "
                          "predictions ({})",
                          least, most, counted(compared, "curve"));
  if (composed > 0)
    text += fmt::format("; the times of {} are composed of a few measured iterations",
                        counted(composed, "curve"));
  return text + fmt::format("; the network was {}.", record.at("network").get<std::string>());
}

std::string what_limits_method(const MethodResult& best) {
  const ordered_json& curve = *best.first;
  const double exchanges = std::max(1.0, number_or(curve.at("exchanges"), 1));
  const double bytes = number_or(curve.at("wan").at("payload_bytes"), 0) / exchanges;
  std::string text = fmt::format("What limits {}: {} cross the WAN in an exchange", best.name,
                                 to_text(Bytes{std::llround(bytes)}));
  if (const double period = number_or(curve.at("period_ns"), 0); period > 0)
    text += fmt::format(", from one to the next it takes {}", ns_text(period));
  if (const ordered_json& fresh = curve.at("fresh_share"); fresh.is_number())
    text += fmt::format(", and {:.0f}% of its parts meet fresh weights", 100 * fresh.get<double>());
  return text + ".";
}

ordered_json curve_row(const ordered_json& curve) {
  return {{"method", curve.at("method")},
          {"seed", curve.at("seed")},
          {"rate", curve.at("learning_rate")},
          {"kind", curve.at("kind")},
          {"points", curve.at("points")},
          {"validation", last_loss(curve)},
          {"updates", curve.at("iterations_to_target")},
          {"time_ns", curve.at("time_to_target_ns")},
          {"period_ns", curve.at("period_ns")},
          {"predicted_period_ns", curve.at("predicted_period_ns")},
          {"fresh", curve.at("fresh_share")},
          {"wan_bytes", number_or(curve.at("wan").at("payload_bytes"), 0) /
                            std::max(1.0, number_or(curve.at("exchanges"), 1))}};
}

ordered_json run_of(const ordered_json& record, const std::string& name) {
  return {{"name", name},
          {"creator", fmt::format("bench_train {}", version())},
          {"git_commit", record.value("git_commit", std::string{"?"})},
          {"command_line", record.value("command_line", std::string{})},
          {"scenario", record.at("scenario_text")},
          {"environment", record.at("environment")},
          {"time_scale", 1.0}};
}

RunPage page_of(const ordered_json& record, const std::string& name) {
  const ordered_json& train = record.at("train");
  const std::vector<MethodResult> all = results_of(record);
  if (all.empty()) fail("{}: no method is finished. Let the run go on with --resume.", name);
  const std::string target = target_text(train);
  ordered_json data{{"sentences",
                     {what_was_asked(record, all.size()),
                      is_timed(record) ? who_exchanges_soonest(all) : who_won(all.front(), target),
                      is_timed(record) ? how_much_later(all) : how_much_sooner(all),
                      how_true_times_are(record), what_limits_method(all.front())}},
                    {"schedules", ordered_json::array()},
                    {"runs", ordered_json::array({run_of(record, name)})},
                    {"timelines", ordered_json::array()},
                    {"training", {{"target", nullptr}, {"curves", ordered_json::array()}}},
                    {"left_out", ""}};
  if (!target.empty()) data["training"]["target"] = train.at("target").at("value");
  for (const ordered_json& curve : train.at("curves"))
    data["training"]["curves"].push_back(curve_row(curve));
  data["made_by"] = fmt::format("longhaul {} ({})", version(), git_commit());
  return {fmt::format("{}: {}", record.at("scenario").get<std::string>(),
                      counted(std::ssize(all), "method")),
          std::move(data)};
}

}  // namespace

bool is_of_training(const ordered_json& record) {
  return record.is_object() && record.value("benchmark", std::string{}) == "bench_train" &&
         record.contains("train");
}

RunPage train_page(const ordered_json& record, const std::string& name) {
  try {
    return page_of(record, name);
  } catch (const ordered_json::exception& problem) {
    fail("{}: its record is damaged ({}). Run it again.", name, problem.what());
  }
}

std::string write_page_of_training(const std::filesystem::path& directory,
                                   const ordered_json& record) {
  const std::filesystem::path file = directory / "report.html";
  try {
    require_new_file(file);
    const RunPage page = train_page(record, directory.string());
    write_new_file(file, [&](std::ostream& out) { out << report_page(page.title, page.data); });
  } catch (const Error& problem) {
    return left_out_text(file, directory, problem.what());
  }
  return {};
}

}  // namespace longhaul::report
