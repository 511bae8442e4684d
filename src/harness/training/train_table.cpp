#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/version.hpp"
#include "harness/training/train_rivals.hpp"
#include "harness/training/train_run.hpp"

namespace longhaul::harness {
namespace {

/// Between datacenters, of an exchange: of the first ones, which send more, and of the others. Sets
/// alone, without what stages send each other.
struct ExchangedBytes {
  std::int64_t early_exchanges = 0;
  double early = 0, later = 0;
};

ExchangedBytes exchanged_bytes(const TrainMethod& method, const TrainCurve& curve) {
  const auto exchanges = std::max<std::int64_t>(1, std::ssize(curve.elapsed));
  const auto all = static_cast<double>(curve.wan_payload_bytes - curve.wan_between_stages);
  std::vector<double> early;
  if (const auto rival = with_warm_up(method.rival, static_cast<int>(exchanges)))
    early = training::early_bits(*rival);
  early.resize(std::min(early.size(), static_cast<std::size_t>(exchanges)));
  if (early.empty()) return {0, 0, all / static_cast<double>(exchanges)};
  const double bits = std::accumulate(early.begin(), early.end(), 0.0);
  const double later = training::bits_per_number(*method.rival);
  const auto first = std::ssize(early);
  const double of_bit = all / (bits + static_cast<double>(exchanges - first) * later);
  return {first, of_bit * bits / static_cast<double>(first), of_bit * later};
}

}  // namespace

std::string curves_csv(const std::vector<TrainMethod>& methods, const TrainRun& run,
                       const std::string& command_line) {
  const auto word = [](std::string text) {
    std::ranges::replace(text, ',', ' ');
    return text;
  };
  const std::string source = word(command_line) + ',' + git_commit();
  std::string csv =
      "method,seed,learning_rate,exchange,serve,staleness,local_steps,fragments,overlap,host_tasks,"
      "early_exchanges,early_wan_bytes,wan_bytes,updates,validation,command,commit\n";
  for (const TrainCurve& curve : run.curves) {
    const TrainMethod& method = *std::ranges::find(methods, curve.method, &TrainMethod::name);
    const Training& train = method.scenario.train;
    const ExchangedBytes bytes = exchanged_bytes(method, curve);
    const training::RivalSettings rival = method.rival.value_or(training::RivalSettings{});
    const std::string of_curve = fmt::format(
        "{},{},{},{},{},{},{},{},{},{:d},{},{:.0f},{:.0f}", word(curve.method), curve.seed,
        curve.learning_rate, to_string(train.compress.exchange), to_string(train.serve),
        train.staleness, method.local_steps(), rival.fragments, rival.overlap,
        method.has_host_tasks, bytes.early_exchanges, bytes.early, bytes.later);
    for (const TrainPoint& point : curve.points)
      csv += fmt::format(
          "{},{},{},{}\n", of_curve, point.iteration,
          std::isfinite(point.validation) ? fmt::format("{:.6g}", point.validation) : std::string{},
          source);
  }
  return csv;
}

}  // namespace longhaul::harness
