#include <nlohmann/json.hpp>

#include "base/statistics/sample.hpp"
#include "base/table.hpp"
#include "harness/environment/facts.hpp"
#include "harness/layers/layer_parts.hpp"
#include "report/record_file.hpp"

namespace longhaul::harness {

std::string layer_table(const LayerReport& report) {
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
      return value > 0 && most > 0 ? fmt::format("{:.0f}%", 100 * value / most) : std::string{};
    };
    table.add_row({part.group == "block" ? "layer, " + part.name : part.name,
                   std::to_string(times.n), fmt::format("{:.4g} ms", 1e3 * times.median),
                   rate(flops, 1e12), share(flops, report.most_flops), rate(bytes, 1e9),
                   share(bytes, report.most_bytes)});
  }
  return table.text();
}

nlohmann::ordered_json json_of_shape(const nn::ModelShape& shape) {
  return {{"tokens", shape.tokens()},   {"hidden", shape.hidden},
          {"heads", shape.heads},       {"intermediate", shape.intermediate},
          {"kv_heads", shape.kv_heads}, {"vocabulary", shape.vocabulary}};
}

nlohmann::ordered_json layer_record(const LayerReport& report, const std::string& command_line) {
  nlohmann::ordered_json record = report::record_header(
      {.benchmark = "bench_layers", .numbers = "measured", .command_line = command_line});
  record["check"] = "ok";  // what is wrong ends the run
  record["environment"] = local_environment(command_line);
  record["device"] = {{"name", report.device}, {"notes", report.notes}};
  record["shape"] = json_of_shape(report.shape);
  if (report.most_flops > 0) {
    record["product_flops_per_second"] = report.most_flops;
    record["copy_bytes_per_second"] = report.most_bytes;
  }
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

}  // namespace longhaul::harness
