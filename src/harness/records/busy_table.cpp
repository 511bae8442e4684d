#include <algorithm>

#include "base/table.hpp"
#include "harness/records/pipeline_record.hpp"
#include "report/tables.hpp"

namespace longhaul::harness {
namespace {

double busy_ratio(const plan::ResourceUse& use, const report::ScheduleRecord& record) {
  return record.makespan_ns > 0
             ? static_cast<double>(use.busy.count()) / static_cast<double>(record.makespan_ns)
             : 0.0;
}

}  // namespace

std::string busy_table(const std::vector<PipelineMeasurement>& measurements) {
  Table table{{{"schedule", Align::left}, {"resource", Align::left}, {"predicted"}, {"measured"}}};
  constexpr std::size_t kMost = 4;
  bool any = false;
  for (const PipelineMeasurement& m : measurements) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < m.predicted.resources.size(); ++i)
      if (m.predicted.resources[i].busy > Duration::zero()) order.push_back(i);
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::size_t i) { return m.predicted.resources[i].busy; });
    order.resize(std::min(order.size(), kMost));
    for (const std::size_t i : order) {
      any = true;
      table.add_row({m.predicted.schedule, m.predicted.resources[i].name,
                     report::percent_text(busy_ratio(m.predicted.resources[i], m.predicted)),
                     report::percent_text(busy_ratio(m.measured.resources[i], m.measured))});
    }
  }
  std::vector<report::TrafficOfSchedule> traffic;
  for (const PipelineMeasurement& m : measurements)
    traffic.push_back({m.predicted.schedule, m.predicted.traffic});
  return (any ? "\nhow busy links and collectives were, the busiest of each schedule, % of the "
                "makespan\n" +
                    table.text()
              : "") +
         report::traffic_table_text(traffic);
}

}  // namespace longhaul::harness
