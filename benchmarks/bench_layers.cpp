// How well does a device compute a layer? F, D, W, B and R of one decoder layer against the rate of
// a large product, and each kernel against the rate of a large copy. One process, no ranks.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/program/program.hpp"
#include "base/statistics/sample.hpp"
#include "harness/environment/facts.hpp"
#include "harness/layers/layer_options.hpp"
#include "harness/options/run_files.hpp"
#include "nn/cuda/factory.hpp"

namespace longhaul::bench {
namespace {

using Options = harness::LayerOptions;

harness::LayerReport measure(const Options& options,
                             const std::vector<harness::ListedProduct>& products) {
  harness::LayerReport report;
  report.shape = harness::preset_shape(options.model, options.tokens, options.vocabulary);
  const std::unique_ptr<nn::TensorOps> math = math_of(options);
  report.device = device_of(options);
  report.notes = nn::accelerator_notes(*math);
  if (options.load_parameters > 0) {
    report.parts = harness::time_loads(*math, options.load_parameters, options.samples);
    return report;
  }
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
  if (options.parts == "forward") {
    add({harness::time_forward(*math, memory, report.shape, options.samples)});
    return report;
  }
  if (options.parts != "kernels") {
    harness::check_flops(*math, report.shape);
    add(harness::time_blocks(*math, memory, report.shape, options.samples));
  }
  if (options.parts != "blocks") add(harness::time_kernels(*math, memory, report.shape, timing));
  return report;
}

void write_results(const Options& options, const std::vector<harness::ListedProduct>& products,
                   const harness::LayerReport& report, const nlohmann::ordered_json& record) {
  if (options.out.empty()) return;
  harness::write_new_file(options.out / "record.json", record.dump(2) + "\n");
  if (!products.empty())
    harness::write_new_file(
        options.out / "products.csv",
        harness::products_csv(products, {report.parts.begin() + 2, report.parts.end()}));
}

int main_of(int argc, char** argv) {
  Options options;
  Arguments arguments{
      "Measures a layer's blocks and the device's kernels against what it can do at most."};
  harness::declare_layer_options(arguments, options);
  arguments.footer(harness::help_footer({"build/bin/bench_layers --model tiny"}));
  if (const auto code = read_arguments(arguments, argc, argv)) return static_cast<int>(*code);
  harness::settle_layer_options(options);
  std::vector<harness::ListedProduct> products;
  if (!options.products.empty()) products = harness::read_products(options.products);
  if (!options.out.empty()) harness::require_free(options.out);
  const std::string command_line = harness::command_line(argc, argv);
  harness::LayerReport report;
  nlohmann::ordered_json record;
  std::string text;
  if (options.beside.empty()) {
    report = measure(options, products);
    record = harness::layer_record(report, command_line);
    text = harness::layer_table(report);
  } else {
    const harness::BesideReport beside = beside_report(options);
    report.device = beside.device;
    report.notes = beside.notes;
    record = harness::beside_record(beside, command_line);
    text = harness::beside_table(beside);
  }
  if (options.json)
    fmt::print("{}\n", record.dump(2));
  else
    fmt::print("{}{}\n{}", report.device, report.notes.empty() ? "" : ", " + report.notes, text);
  write_results(options, products, report, record);
  return 0;
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::run_program([&] { return longhaul::bench::main_of(argc, argv); });
}
