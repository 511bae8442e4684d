#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/statistics/sample.hpp"
#include "compress/kernels/cpu_level.hpp"
#include "compress/select/sparsifier.hpp"
#include "harness/compress_cost/compress_cost.hpp"
#include "harness/environment/facts.hpp"
#include "report/record_file.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

double median_of(const std::vector<KernelCost>& costs, const std::string& name) {
  const auto found = std::ranges::find(costs, name, &KernelCost::name);
  LONGHAUL_ASSERT(found != costs.end(), "no kernel {}", name);
  return summarize(found->seconds).median;
}

void expect_true(bool holds, const char* what) {
  if (!holds)
    throw Error{fmt::format("{} does not hold (a kernel is wrong). Run the tests.", what),
                ExitCode::answer_is_no};
}

/// What is sent of a few gradients, at one level of the processor.
std::vector<compress::SparseSet> sent_at(compress::CpuLevel level, bool& lost) {
  const compress::LimitedCpuLevel limited{level};
  constexpr std::int64_t kCount = 40'007;
  compress::Sparsifier sparsifier{{.method = compress::Method::threshold, .keep = 0.02}, kCount};
  LargeNumbers gradient{kCount}, residual{kCount}, sum{kCount};
  std::vector<compress::SparseSet> sent;
  for (std::uint64_t step = 1; step <= 5; ++step) {
    gradient.fill(step);
    for (std::size_t i = 0; i < gradient.all().size(); ++i)
      sum.all()[i] = residual.all()[i] + gradient.all()[i];
    sent.push_back(sparsifier.take(gradient.all(), residual.all()));
    compress::add_to(sum.all(), sent.back(), -1);
    lost = lost || !std::ranges::equal(sum.all(), residual.all());
  }
  return sent;
}

}  // namespace

void check_kernels() {
  bool lost = false;
  const auto plain = sent_at(compress::CpuLevel::plain, lost);
  for (const compress::CpuLevel level : every<compress::CpuLevel>())
    expect_true(sent_at(level, lost) == plain, "that every level keeps equal bits");
  expect_true(!lost, "that sent and residual add up");
}

std::string kernel_table(const std::vector<KernelCost>& costs, const CompressCostOptions& options) {
  Table table{{{"kernel", Align::left},
               {"median [ms]"},
               {"min [ms]"},
               {"GB/s"},
               {"x read"},
               {"x memcpy"},
               {"numbers"}}};
  for (const KernelCost& cost : costs) {
    const SampleSummary times = summarize(cost.seconds);
    table.add_row({cost.name, fmt::format("{:.3f}", times.median * 1e3),
                   fmt::format("{:.3f}", times.min * 1e3),
                   fmt::format("{:.2f}", cost.bytes / times.median / 1e9),
                   fmt::format("{:.3f}", cost.over_read), fmt::format("{:.3f}", cost.over_copy),
                   cost.kept == 0 ? "" : fmt::format("{}", cost.kept)});
  }
  return fmt::format(
             "{} numbers, {} kept, {} repetitions, one core ({}); measured, caches cold\n\n",
             options.count, options.keep, options.repetitions, to_string(compress::cpu_level())) +
         table.text(options.table_width());
}

std::string kernel_record(const std::vector<KernelCost>& costs,
                          const CompressCostOptions& options) {
  ordered_json json = report::record_header({.benchmark = "bench_compress",
                                             .numbers = "measured",
                                             .creator = "bench_compress",
                                             .command_line = options.command_line});
  json["environment"] = local_environment(options.command_line);
  json["count"] = options.count;
  json["keep"] = options.keep;
  json["repetitions"] = options.repetitions;
  json["cpu_level"] = to_string(compress::cpu_level());
  json["kernels"] = ordered_json::array();
  for (const KernelCost& cost : costs) {
    const SampleSummary times = summarize(cost.seconds);
    ordered_json kernel;
    kernel["name"] = cost.name;
    kernel["median_s"] = times.median;
    kernel["min_s"] = times.min;
    kernel["seconds"] = cost.seconds;
    kernel["bytes_touched"] = cost.bytes;
    kernel["bytes_per_second"] = cost.bytes / times.median;
    kernel["over_read"] = cost.over_read;
    kernel["over_memcpy"] = cost.over_copy;
    kernel["numbers_kept"] = cost.kept;
    json["kernels"].push_back(std::move(kernel));
  }
  return report::json_text(json);
}

std::string part_costs(const std::vector<KernelCost>& costs, const CompressCostOptions& options) {
  const auto line = [&](const char* key, double seconds) {
    return fmt::format("{} = \"{:.4f}ms\"\n", key, seconds * 1e3 / options.parts);
  };
  const double copy = median_of(costs, "memcpy");
  std::string text = fmt::format(
      "# Measured by {} on one core: one of {} equal parts of {} numbers, {} kept.\n"
      "# The copies are within the host's memory; what a GPU's take depends on its bus.\n",
      options.command_line, options.parts, options.count, options.keep);
  text += line("copy_out", copy);
  text += line("compress", median_of(costs, "threshold of blocks of 16, residual apart"));
  text += line("merge", median_of(costs, "merge of 8 sets"));
  text += line("optimize", median_of(costs, "momentum skip"));
  text += line("copy_in", copy);
  return text;
}

}  // namespace longhaul::harness
