// How well does a device compute a layer? F, D, W, B and R of one decoder layer against the rate of
// a large product, and each kernel against the rate of a large copy. One process, no ranks.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/program/program.hpp"
#include "base/statistics/sample.hpp"
#include "cuda/accelerator.hpp"
#include "harness/environment/facts.hpp"
#include "harness/environment/shared_options.hpp"
#include "harness/layers/layer_parts.hpp"
#include "harness/options/run_files.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/cuda/factory.hpp"

namespace longhaul::bench {
namespace {

struct Options : harness::SharedOptions {
  std::string model = "m8";
  int index = 0;
  int tokens = 4096;
  int samples = 20;
  int reference = 8192;
  int copied_mib = 1024;
  int vocabulary = 32'000;
  std::string parts = "all";
  std::filesystem::path products;
};

std::unique_ptr<nn::TensorOps> math_of(const Options& options, harness::LayerReport& report) {
  if (options.device == "cpu") {
    report.device = "cpu, one core";
    return nn::make_cpu_math();
  }
  const std::vector<cuda::AcceleratorInfo> known = cuda::accelerators();
  if (known.empty())
    fail("--device cuda finds no GPU ({}). Use --device cpu.", cuda::why_no_accelerator());
  auto made = nn::make_cuda_tensor_ops(options.index);
  report.device = known[static_cast<std::size_t>(options.index)].name;
  report.notes = nn::accelerator_notes(*made);
  return made;
}

harness::LayerReport measure(const Options& options,
                             const std::vector<harness::ListedProduct>& products) {
  harness::LayerReport report;
  report.shape = harness::preset_shape(options.model, options.tokens, options.vocabulary);
  const std::unique_ptr<nn::TensorOps> math = math_of(options, report);
  nn::DeviceMemory memory{*math, 0};
  const harness::TimingOptions timing{options.samples, options.check ? 1e-5 : 5e-3};
  const auto add = [&](std::vector<harness::LayerPart> parts) {
    std::move(parts.begin(), parts.end(), std::back_inserter(report.parts));
  };
  const std::size_t copied = static_cast<std::size_t>(options.copied_mib) * (1U << 20U) /
                             bytes_of(math->working_type()) / 2;
  add(harness::time_references(*math, memory, options.reference, copied, timing));
  report.most_bytes = report.parts.at(0).bytes / summarize(report.parts.at(0).seconds).median;
  report.most_flops = report.parts.at(1).flops / summarize(report.parts.at(1).seconds).median;
  if (!products.empty()) {
    add(harness::time_products(*math, memory, products, timing));
    return report;
  }
  if (options.parts != "kernels") {
    harness::check_flops(*math, report.shape);
    add(harness::time_blocks(*math, memory, report.shape, options.samples));
  }
  if (options.parts != "blocks") add(harness::time_kernels(*math, memory, report.shape, timing));
  return report;
}

void declare(Arguments& arguments, Options& options) {
  arguments.option("--model", options.model, "m8, m70, another preset, or tiny").shows_default();
  harness::add_device_option(arguments, options.device, "cpu or cuda").one_of({"cpu", "cuda"});
  arguments.option("--index", options.index, "which GPU").shows_default();
  arguments.option("--tokens", options.tokens, "of the microbatch: one sequence")
      .shows_default()
      .within(1, 1'000'000);
  arguments.option("--samples", options.samples, "of each part").shows_default().within(1, 100'000);
  arguments.option("--reference", options.reference, "sides of the large product")
      .shows_default()
      .within(8, 65'536);
  arguments.option("--copied-mib", options.copied_mib, "MiB that the large copy reads and writes")
      .shows_default()
      .within(1, 65'536);
  arguments
      .option("--vocabulary", options.vocabulary, "of embedding and head, where --model names none")
      .shows_default()
      .within(1, 10'000'000);
  arguments.option("--parts", options.parts, "beside the references: all, blocks or kernels")
      .one_of({"all", "blocks", "kernels"})
      .shows_default();
  arguments.option("--products", options.products,
                   "measure these products instead: a CSV with columns m, n, k; with --out also "
                   "written as products.csv, beside the file's own median_ns");
  harness::add_shared_options(
      arguments, options,
      {{harness::Shared::out}, {harness::Shared::json}, {harness::Shared::check}});
}

int main_of(int argc, char** argv) {
  Options options;
  Arguments arguments{
      "Measures a layer's blocks and the device's kernels against what it can do at most."};
  declare(arguments, options);
  arguments.footer(harness::help_footer({"build/bin/bench_layers --model tiny"}));
  if (const auto code = read_arguments(arguments, argc, argv)) return static_cast<int>(*code);
  if (options.check) {
    options.model = "tiny";
    options.tokens = 48;
    options.samples = 2;
    options.reference = 64;
    options.copied_mib = 1;
  }
  std::vector<harness::ListedProduct> products;
  if (!options.products.empty()) products = harness::read_products(options.products);
  if (!options.out.empty()) harness::require_free(options.out);
  const harness::LayerReport report = measure(options, products);
  const auto record = harness::layer_record(report, harness::command_line(argc, argv));
  if (options.json)
    fmt::print("{}\n", record.dump(2));
  else
    fmt::print("{}{}\n{}", report.device, report.notes.empty() ? "" : ", " + report.notes,
               harness::layer_table(report));
  if (!options.out.empty()) {
    harness::write_new_file(options.out / "record.json", record.dump(2) + "\n");
    if (!products.empty())
      harness::write_new_file(
          options.out / "products.csv",
          harness::products_csv(products, {report.parts.begin() + 2, report.parts.end()}));
  }
  return 0;
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::run_program([&] { return longhaul::bench::main_of(argc, argv); });
}
