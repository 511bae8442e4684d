// How well does a device compute a layer? F, D, W, B and R of one decoder layer against the rate of
// a large product, and each kernel against the rate of a large copy. One process, no ranks.
#include <algorithm>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/sample.hpp"
#include "base/table.hpp"
#include "base/version.hpp"
#include "cuda/accelerator.hpp"
#include "harness/environment/run_facts.hpp"
#include "harness/kernels/layer_parts.hpp"
#include "harness/options/record_files.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/cuda/factory.hpp"
#include "scenario/presets.hpp"

namespace longhaul::bench {
namespace {

struct Options {
  std::string model = "m8";
  std::string device = "cpu";
  int index = 0;
  int tokens = 4096;
  int samples = 20;
  int reference = 8192;
  int copied_mib = 1024;
  std::filesystem::path out;
  bool check = false;
  bool json = false;
};

struct Report {
  ModelShape shape;
  std::string device, notes;
  std::vector<LayerPart> parts;
  double most_flops = 0, most_bytes = 0;  ///< a second, of the references
};

/// One sequence of `tokens`.
ModelShape shape_of(const Options& options) {
  if (options.model == "tiny") return {1, options.tokens, 64, 176, 4, 2, 200, 3};
  for (const ModelPreset& preset : model_presets()) {
    const Model& model = preset.model;
    if (model.name == options.model)
      return {1,           options.tokens, model.hidden,     model.intermediate,
              model.heads, model.kv_heads, model.vocabulary, 3};
  }
  fail("--model {} is no model. Name tiny, m8, m70, or another of docs/scenario.md.",
       options.model);
}

std::unique_ptr<TensorOps> math_of(const Options& options, Report& report) {
  if (options.device == "cpu") {
    report.device = "cpu, one core";
    return make_cpu_math();
  }
  const std::vector<AcceleratorInfo> known = accelerators();
  if (known.empty())
    fail("--device cuda finds no GPU ({}). Use --device cpu.", why_no_accelerator());
  auto made = make_cuda_tensor_ops(options.index);
  report.device = known[static_cast<std::size_t>(options.index)].name;
  report.notes = accelerator_notes(*made);
  return made;
}

double median_of(const LayerPart& part) { return summarize(part.seconds).median; }

Report measure(const Options& options) {
  Report report;
  report.shape = shape_of(options);
  const std::unique_ptr<TensorOps> math = math_of(options, report);
  DeviceMemory memory{*math, 0};
  const TimingOptions timing{options.samples, options.check ? 1e-5 : 5e-3};
  const auto add = [&](std::vector<LayerPart> parts) {
    std::move(parts.begin(), parts.end(), std::back_inserter(report.parts));
  };
  const std::size_t copied = static_cast<std::size_t>(options.copied_mib) * (1U << 20U) /
                             bytes_of(math->working_type()) / 2;
  add(time_references(*math, memory, options.reference, copied, timing));
  report.most_bytes = report.parts.at(0).bytes / median_of(report.parts.at(0));
  report.most_flops = report.parts.at(1).flops / median_of(report.parts.at(1));
  check_flops(*math, report.shape);
  add(time_blocks(*math, memory, report.shape, options.samples));
  add(time_kernels(*math, memory, report.shape, timing));
  return report;
}

std::string table_of(const Report& report) {
  Table table{{{"part", Align::left},
               {"n"},
               {"median"},
               {"TFLOP/s"},
               {"of product"},
               {"GB/s"},
               {"of copy"}}};
  for (const LayerPart& part : report.parts) {
    const SampleSummary times = summarize(part.seconds);
    const double flops = part.flops / times.median, bytes = part.bytes / times.median;
    const auto rate = [](double value, double unit) {
      return value > 0 ? fmt::format("{:.4g}", value / unit) : std::string{};
    };
    const auto share = [](double value, double most) {
      return value > 0 ? fmt::format("{:.0f}%", 100 * value / most) : std::string{};
    };
    table.add_row({part.group == "block" ? "layer, " + part.name : part.name,
                   std::to_string(times.n), fmt::format("{:.4g} ms", 1e3 * times.median),
                   rate(flops, 1e12), share(flops, report.most_flops), rate(bytes, 1e9),
                   share(bytes, report.most_bytes)});
  }
  return table.text();
}

nlohmann::ordered_json record_of(const Report& report, const std::string& command) {
  nlohmann::ordered_json record;
  record["schema_version"] = 1;
  record["benchmark"] = "bench_layers";
  record["numbers"] = "measured";
  record["git_commit"] = git_commit();
  record["command_line"] = command;
  record["check"] = "ok";  // what is wrong ends the run
  record["environment"] = local_environment(command);
  record["device"] = {{"name", report.device}, {"notes", report.notes}};
  const ModelShape& shape = report.shape;
  record["shape"] = {{"tokens", shape.tokens()},   {"hidden", shape.hidden},
                     {"heads", shape.heads},       {"intermediate", shape.intermediate},
                     {"kv_heads", shape.kv_heads}, {"vocabulary", shape.vocabulary}};
  record["product_flops_per_second"] = report.most_flops;
  record["copy_bytes_per_second"] = report.most_bytes;
  for (const LayerPart& part : report.parts) {
    const SampleSummary times = summarize(part.seconds);
    record["parts"].push_back({{"group", part.group},
                               {"name", part.name},
                               {"flops", part.flops},
                               {"bytes", part.bytes},
                               {"n", times.n},
                               {"min_s", times.min},
                               {"median_s", times.median},
                               {"p95_s", times.p95},
                               {"samples_s", part.seconds}});
  }
  return record;
}

ExitCode main_of(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Measures a layer's blocks and the device's kernels against what it can do at most."};
  app.add_option("--model", options.model, "m8, m70, another preset, or tiny")
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu or cuda")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--index", options.index, "which GPU")->capture_default_str();
  app.add_option("--tokens", options.tokens, "of the microbatch: one sequence")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--samples", options.samples, "of each part")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_option("--reference", options.reference, "sides of the large product")
      ->capture_default_str()
      ->check(CLI::Range(8, 65'536));
  app.add_option("--copied-mib", options.copied_mib, "MiB that the large copy reads and writes")
      ->capture_default_str()
      ->check(CLI::Range(1, 65'536));
  app.add_option("--out", options.out, "directory for record.json");
  app.add_flag("--json", options.json, "print the record instead of a table");
  app.add_flag("--check", options.check, "a tiny model; the answer is the exit code");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? ExitCode::fine : ExitCode::bad_input;
  }
  if (options.check) {
    options.model = "tiny";
    options.tokens = 48;
    options.samples = 2;
    options.reference = 64;
    options.copied_mib = 1;
  }
  if (!options.out.empty()) require_free(options.out);
  const Report report = measure(options);
  const auto record = record_of(report, command_line(argc, argv));
  if (options.json)
    fmt::print("{}\n", record.dump(2));
  else
    fmt::print("{}{}\n{}", report.device, report.notes.empty() ? "" : ", " + report.notes,
               table_of(report));
  if (!options.out.empty()) write_new_file(options.out / "record.json", record.dump(2) + "\n");
  return ExitCode::fine;
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  try {
    return static_cast<int>(longhaul::bench::main_of(argc, argv));
  } catch (const longhaul::Error& error) {
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {  // the system's: no memory, no directory
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(longhaul::ExitCode::run_failed);
  }
}
