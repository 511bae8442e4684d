#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "harness/environment/facts.hpp"
#include "harness/trace_cost/phases.hpp"
#include "report/record_file.hpp"

namespace longhaul::harness {
namespace {

struct Disk {
  std::uintmax_t segments = 0, files = 0, trace = 0;
};
Disk disk_use(const std::filesystem::path& directory) {
  Disk disk;
  for (const auto& entry : std::filesystem::directory_iterator{directory}) {
    const bool segment = entry.path().filename().string().starts_with("segment.");
    if (segment) ++disk.files;
    (segment ? disk.segments : disk.trace) += entry.file_size();
  }
  return disk;
}

std::string table_of(const std::vector<PhaseCost>& phases) {
  using Align = Align;
  Table table{{{"step", Align::left}, {"rows"}, {"s"}, {"CPU s"}, {"rows/s"}, {"peak memory"}}};
  for (const PhaseCost& phase : phases)
    table.add_row({phase.name, std::to_string(phase.rows), fmt::format("{:.2f}", phase.seconds),
                   fmt::format("{:.2f}", phase.processor_seconds),
                   fmt::format("{:.3g}", static_cast<double>(phase.rows) / phase.seconds),
                   to_text(phase.peak_memory)});
  return table.text();
}

nlohmann::json record_of(const std::vector<PhaseCost>& phases, const TraceOptions& options,
                         const Disk& disk) {
  nlohmann::json record = report::record_header({.command_line = options.command_line});
  record["environment"] = local_environment(options.command_line);
  record["kind"] = "measured";
  record["ranks"] = options.shape.ranks;
  record["iterations"] = options.shape.iterations;
  record["ranks_per_host"] = options.ranks_per_host;
  record["segment_files"] = disk.files;
  record["segment_bytes"] = disk.segments;
  record["trace_bytes"] = disk.trace;
  record["steps"] = nlohmann::json::array();
  for (const PhaseCost& phase : phases)
    record["steps"].push_back({{"name", phase.name},
                               {"rows", phase.rows},
                               {"seconds", phase.seconds},
                               {"processor_seconds", phase.processor_seconds},
                               {"peak_memory_bytes", phase.peak_memory.count()}});
  return record;
}

}  // namespace

std::string trace_table(const std::vector<PhaseCost>& phases, const TraceOptions& options) {
  const Disk disk = disk_use(options.directory);
  const auto rows = static_cast<double>(phases.front().rows);
  return fmt::format("{}\n{} segment files, {:.1f} bytes a row; trace.h5 {:.1f} bytes a row\n",
                     table_of(phases), disk.files, static_cast<double>(disk.segments) / rows,
                     static_cast<double>(disk.trace) / rows);
}

std::string trace_record(const std::vector<PhaseCost>& phases, const TraceOptions& options) {
  return record_of(phases, options, disk_use(options.directory)).dump(2) + '\n';
}

}  // namespace longhaul::harness
