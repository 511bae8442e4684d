// What do compression and sparse steps cost? On a host: each kernel on one core, with cold caches
// and other indices in every repetition, beside memcpy and a read-only pass of the same run. On a
// GPU: selections against a copy, and what they and copies take from a layer's block beside them.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/program/program.hpp"
#include "compress/settings.hpp"
#include "harness/compress_device/compress_device.hpp"
#include "harness/environment/facts.hpp"
#include "report/record_file.hpp"

namespace longhaul::bench {
namespace {

void declare_device(Arguments& arguments, harness::CompressDeviceOptions& options) {
  harness::add_device_option(arguments, options.device,
                             "cpu: kernels of the host; cuda: those of a GPU beside a layer")
      .one_of({"cpu", "cuda"});
  arguments.option("--index", options.index, "which GPU").within(0, 1023);
  arguments.option("--model", options.model, "whose layer runs beside (m8, m70, ..., tiny)")
      .shows_default();
  arguments.option("--tokens", options.tokens, "of that layer's microbatch")
      .shows_default()
      .within(1, 1'000'000);
  arguments.option("--samples", options.samples, "of the layer beside each kind of work")
      .shows_default()
      .within(1, 100'000);
  arguments.option("--host-threads", options.host_threads, "that compress (default: all but two)")
      .within(1, 4096);
}

void declare(Arguments& arguments, harness::CompressDeviceOptions& options) {
  arguments.option("--count", options.count, "numbers of the gradient (default: ViT-B-16's)")
      .within(std::int64_t{1000}, std::int64_t{4'000'000'000});
  arguments.option("--keep", options.keep, "share that is kept").shows_default();
  arguments.option("--repetitions", options.repetitions, "of each kernel").within(1, 1000);
  arguments.option("--seed", options.seed, "of the numbers");
  arguments.option("--costs", options.costs,
                   "write what a part's host tasks cost, for train.costs.file (.toml)");
  arguments.option("--parts", options.parts, "equal parts of --costs (default 12)")
      .within(1, 100'000);
  declare_device(arguments, options);
  harness::add_shared_options(
      arguments, options,
      {{harness::Shared::check, "measure nothing, compare results with known ones"},
       {harness::Shared::wide},
       {harness::Shared::json, "print a record instead of a table"},
       {harness::Shared::out, "write the record (.json); an existing file is refused"}});
}

void require_other_indices(const harness::KernelCost& cost) {
  for (const auto& first : cost.first_blocks)
    if (std::ranges::count(cost.first_blocks, first) > 1)
      throw Error{fmt::format("{} had the same indices in two repetitions.", cost.name),
                  ExitCode::answer_is_no};
}

/// A small run of everything, whose times no one looks at.
void check() {
  harness::check_kernels();
  harness::CompressCostOptions small;
  small.count = 70'001;
  small.repetitions = 2;
  std::size_t drawn = 0;
  for (const harness::KernelCost& cost : harness::measure_kernels(small)) {
    if (cost.seconds.size() != 2 || !(cost.seconds[0] > 0))
      throw Error{fmt::format("{} took no time (it did not run).", cost.name),
                  ExitCode::answer_is_no};
    require_other_indices(cost);
    drawn += cost.first_blocks.size();
  }
  LONGHAUL_ASSERT(drawn == 2 * 14, "{} repetitions had sets drawn", drawn);
  fmt::print("check: ok\n");
}

void write_record(const harness::CompressDeviceOptions& options, const std::string& text) {
  if (options.out.empty()) return;
  report::write_new_file(options.out, [&](std::ostream& out) { out << text; });
}

void measure_on_device(harness::CompressDeviceOptions options) {
  if (!options.costs.empty())
    fail("--costs is of a host (--device is cuda). Leave one of the two out.");
  if (options.check) {
    options.count = 70'001;
    options.repetitions = options.samples = 2;
    options.model = "tiny";
    options.tokens = 48;
  }
  const harness::CompressDeviceReport measured =
      harness::measure_device(options, [&](const std::string& table) {
        if (options.json || options.check) return;
        fmt::print("{}", table);
        std::fflush(stdout);
      });
  const std::string record = harness::device_record(measured, options);
  write_record(options, record);
  if (options.check)
    fmt::print("check: ok\n");
  else if (options.json)
    fmt::print("{}", record);
}

int main_of(int argc, char** argv) {
  harness::CompressDeviceOptions options;
  Arguments arguments{"Times compression and sparse optimizers on one core, or on a GPU."};
  declare(arguments, options);
  arguments.footer(harness::help_footer(
      {"build/bin/bench_compress --check", "build/bin/bench_compress --count 1000000"}));
  options.command_line = harness::command_line(argc, argv);
  if (const auto code = read_arguments(arguments, argc, argv)) return static_cast<int>(*code);
  static_cast<void>(compress::parse_keep("--keep", options.keep));
  if (options.check && options.device == "cpu") {
    check();
    return 0;
  }
  for (const auto& file : {options.out, options.costs})
    if (!file.empty()) report::require_new_file(file);
  if (options.device != "cpu") {
    measure_on_device(options);
    return 0;
  }
  const std::vector<harness::KernelCost> costs = harness::measure_kernels(options);
  write_record(options, harness::kernel_record(costs, options));
  if (!options.costs.empty())
    report::write_new_file(options.costs,
                           [&](std::ostream& out) { out << harness::part_costs(costs, options); });
  fmt::print("{}", options.json ? harness::kernel_record(costs, options)
                                : harness::kernel_table(costs, options));
  return 0;
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::run_program([&] { return longhaul::bench::main_of(argc, argv); });
}
