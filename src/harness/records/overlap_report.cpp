#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "harness/records/pipeline_record.hpp"
#include "report/overlap_rows.hpp"

namespace longhaul::harness {

void add_overlap(nlohmann::ordered_json& row, const PipelineMeasurement& m) {
  if (!m.overlap) return;
  const nlohmann::ordered_json simulated = report::to_json(m.overlap->predicted);
  for (const auto& [key, value] : simulated.items()) row[key] = value;
  planner::OverlapResult measured = m.overlap->predicted;
  measured.exposure = m.overlap->measured;
  const nlohmann::ordered_json seen = report::to_json(measured);
  row["measured_communication_ns"] = seen["communication_ns"];
  row["measured_exposed_ns"] = seen["exposed_ns"];
}

std::string overlap_table(const std::vector<PipelineMeasurement>& measurements) {
  Table table{{{"schedule", Align::left},
               {"overlap", Align::left},
               {"rank"},
               {"communication"},
               {"measured"},
               {"exposed"},
               {"measured"},
               {"alpha"},
               {"gain at most"},
               {"peak"}}};
  bool any = false;
  for (const PipelineMeasurement& m : measurements) {
    if (!m.overlap) continue;
    any = true;
    const planner::OverlapResult& result = m.overlap->predicted;
    table.add_row({result.schedule, result.overlap, std::to_string(number(result.rank)),
                   to_text(result.exposure.total()), to_text(m.overlap->measured.total()),
                   to_text(result.exposure.total_exposed()),
                   to_text(m.overlap->measured.total_exposed()),
                   fmt::format("{:.2f}", result.alpha),
                   fmt::format("{:.2f}x", result.speedup_bound()), to_text(result.peak)});
  }
  if (!any) return {};
  std::string text =
      "\ncommunication beside computation, of the rank with the most exposed by the prediction; "
      "predicted and measured\n" +
      table.text();
  for (const PipelineMeasurement& m : measurements)
    if (m.overlap && m.overlap->predicted.certificate)
      text += report::certificate_text(m.overlap->predicted) + "\n";
  return text;
}

}  // namespace longhaul::harness
