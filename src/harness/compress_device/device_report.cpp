#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/statistics/sample.hpp"
#include "harness/compress_device/compress_device.hpp"
#include "harness/environment/facts.hpp"
#include "report/record_file.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

double device_median(const CompressDeviceReport& report, const char* name) {
  const auto found = std::ranges::find(report.costs, std::string_view{name}, &DeviceCost::name);
  LONGHAUL_ASSERT(found != report.costs.end(), "no kernel {}", name);
  return summarize(found->seconds).median;
}

double rate_of(const DeviceCost& cost) { return cost.bytes / summarize(cost.seconds).median; }

double share_of_copy(const CompressDeviceReport& report, const DeviceCost& cost) {
  return rate_of(cost) / rate_of(report.costs.at(0));
}

/// By how much single numbers take longer than blocks, in percent.
double faster_percent(const CompressDeviceReport& report, const char* blocks, const char* singles) {
  return 100 * (device_median(report, singles) / device_median(report, blocks) - 1);
}

/// F of a layer beside other work: how much longer it takes, and what that is for a gradient.
struct Added {
  double percent = 0;
  double gradients_per_second = 0;
  double seconds_each = 0;  ///< of blocks, for one gradient; 0: no gradient was finished
};

Added added_by(const CompressDeviceReport& report, const BesideLayer& beside) {
  const double alone = summarize(report.beside.at(0).seconds).median;
  const double median = summarize(beside.seconds).median;
  Added added{100 * (median / alone - 1)};
  if (beside.elapsed > 0) added.gradients_per_second = beside.gradients / beside.elapsed;
  if (added.gradients_per_second > 0)
    added.seconds_each = (1 - alone / median) / added.gradients_per_second;
  return added;
}

ordered_json costs_json(const CompressDeviceReport& report) {
  ordered_json all = ordered_json::array();
  for (const DeviceCost& cost : report.costs) {
    const SampleSummary times = summarize(cost.seconds);
    all.push_back({{"name", cost.name},
                   {"n", times.n},
                   {"median_s", times.median},
                   {"min_s", times.min},
                   {"samples_s", cost.seconds},
                   {"bytes", cost.bytes},
                   {"bytes_per_second", rate_of(cost)},
                   {"share_of_copy", share_of_copy(report, cost)},
                   {"numbers_taken", cost.taken}});
  }
  return all;
}

ordered_json beside_json(const CompressDeviceReport& report) {
  ordered_json all = ordered_json::array();
  for (const BesideLayer& beside : report.beside) {
    const SampleSummary times = summarize(beside.seconds);
    const Added added = added_by(report, beside);
    all.push_back({{"name", beside.name},
                   {"n", times.n},
                   {"median_s", times.median},
                   {"min_s", times.min},
                   {"samples_s", beside.seconds},
                   {"added_percent", added.percent},
                   {"gradients", beside.gradients},
                   {"gradients_per_second", added.gradients_per_second},
                   {"block_s_per_gradient", added.seconds_each}});
  }
  return all;
}

}  // namespace

std::string device_cost_table(const CompressDeviceReport& report,
                              const CompressDeviceOptions& options) {
  Table table{{{"kernel", Align::left},
               {"n"},
               {"median [ms]"},
               {"min [ms]"},
               {"MB"},
               {"GB/s"},
               {"of copy"},
               {"numbers"}}};
  for (const DeviceCost& cost : report.costs) {
    const SampleSummary times = summarize(cost.seconds);
    table.add_row({cost.name, std::to_string(times.n), fmt::format("{:.4f}", times.median * 1e3),
                   fmt::format("{:.4f}", times.min * 1e3), fmt::format("{:.1f}", cost.bytes / 1e6),
                   fmt::format("{:.1f}", rate_of(cost) / 1e9),
                   fmt::format("{:.0f}%", 100 * share_of_copy(report, cost)),
                   cost.taken == 0 ? "" : std::to_string(cost.taken)});
  }
  return fmt::format(
      "{} numbers, {} kept, {}; measured, caches cold\n\n{}\nBlocks are {:.1f}% faster than single "
      "numbers, with a residual apart {:.1f}%.\n",
      options.count, options.keep, report.device, table.text(options.table_width()),
      faster_percent(report, kBlocksWithin, kSinglesWithin),
      faster_percent(report, kBlocksApart, kSinglesApart));
}

std::string beside_table(const CompressDeviceReport& report, const CompressDeviceOptions& options) {
  Table table{{{"F of a layer", Align::left},
               {"n"},
               {"median [ms]"},
               {"added"},
               {"gradients/s"},
               {"block time for each [ms]"}}};
  for (const BesideLayer& beside : report.beside) {
    const SampleSummary times = summarize(beside.seconds);
    const Added added = added_by(report, beside);
    const bool alone = beside.name == kAlone;
    table.add_row({beside.name, std::to_string(times.n), fmt::format("{:.4f}", times.median * 1e3),
                   alone ? "" : fmt::format("{:+.2f}%", added.percent),
                   alone ? "" : fmt::format("{:.1f}", added.gradients_per_second),
                   added.seconds_each == 0 ? "" : fmt::format("{:.4f}", added.seconds_each * 1e3)});
  }
  return fmt::format("F of {}, {} tokens ({}); {} threads of the host\n\n{}", options.model,
                     options.tokens, report.notes, report.host_threads,
                     table.text(options.table_width()));
}

std::string device_record(const CompressDeviceReport& report,
                          const CompressDeviceOptions& options) {
  ordered_json json = report::record_header({.benchmark = "bench_compress",
                                             .numbers = "measured",
                                             .creator = "bench_compress",
                                             .command_line = options.command_line});
  json["check"] = "ok";  // what the device takes otherwise than the host ends the run
  json["environment"] = local_environment(options.command_line);
  json["device"] = {{"name", report.device}, {"notes", report.notes}};
  json["count"] = options.count;
  json["keep"] = options.keep;
  json["repetitions"] = options.repetitions;
  json["copy_bytes_per_second"] = rate_of(report.costs.at(0));
  json["blocks_faster_percent"] = {
      {"in_gradient", faster_percent(report, kBlocksWithin, kSinglesWithin)},
      {"apart", faster_percent(report, kBlocksApart, kSinglesApart)}};
  json["kernels"] = costs_json(report);
  json["layer"] = {{"model", options.model}, {"tokens", options.tokens}, {"block", "F"}};
  json["host_threads"] = report.host_threads;
  json["beside"] = beside_json(report);
  return report::json_text(json);
}

}  // namespace longhaul::harness
