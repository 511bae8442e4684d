#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "harness/collectives/collective_measurement.hpp"
#include "report/collective_options.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

std::string time_text(double ns) { return to_text(Duration{static_cast<std::int64_t>(ns)}); }

std::string rate_text(double bytes_per_second) {
  return fmt::format("{:.3g}", bytes_per_second / 1e9);
}

std::string interval_of(const SampleSummary& summary) {
  if (!summary.median_interval) return "- (n < 6)";
  return fmt::format("{} - {}", time_text(summary.median_interval->low),
                     time_text(summary.median_interval->high));
}

}  // namespace

std::string collective_tables(const std::vector<CollectiveMeasurement>& measured) {
  std::string text;
  for (std::size_t first = 0; first < measured.size();) {
    const plan::Collective& what = measured[first].predicted.collective;
    text += fmt::format("{}{} of {} among {}\n", first == 0 ? "" : "\n", to_text(what.kind),
                        to_text(what.size), report::counted(std::ssize(what.members), "rank"));
    Table table{{{"algorithm", Align::left},
                 {"pieces"},
                 {"n"},
                 {"predicted"},
                 {"measured"},
                 {"95% interval"},
                 {"diff %"},
                 {"algbw GB/s"},
                 {"busbw GB/s"},
                 {"#wrong"}}};
    for (; first < measured.size(); ++first) {
      const CollectiveMeasurement& each = measured[first];
      const plan::Collective& collective = each.predicted.collective;
      if (collective.kind != what.kind || collective.size != what.size) break;
      const CollectiveRates rates = rates_of(collective, each.summary.median);
      table.add_row({report::algorithm_text(collective), std::to_string(collective.pieces),
                     std::to_string(each.summary.n), to_text(each.predicted.duration),
                     time_text(each.summary.median), interval_of(each.summary),
                     fmt::format("{:+.2f}", each.difference_percent()), rate_text(rates.algorithm),
                     rate_text(rates.bus), std::to_string(each.checks.wrong())});
    }
    text += table.text();
    if (!measured[first - 1].adds_up)
      text += "payloads were cut (--payload): messages were checked, numbers not added up\n";
  }
  return text;
}

ordered_json collectives_json(const std::vector<CollectiveMeasurement>& measured) {
  ordered_json all = ordered_json::array();
  for (const CollectiveMeasurement& each : measured) {
    const plan::Collective& collective = each.predicted.collective;
    const CollectiveRates rates = rates_of(collective, each.summary.median);
    ordered_json json{{"kind", to_text(collective.kind)},
                      {"algorithm", plan::to_string(collective.algorithm)},
                      {"way", report::algorithm_text(collective)},
                      {"members", collective.members.size()},
                      {"pieces", collective.pieces},
                      {"size_bytes", collective.size.count()},
                      {"messages", each.predicted.messages},
                      {"predicted_ns", each.predicted.duration.count()},
                      {"n", each.summary.n},
                      {"median_ns", each.summary.median}};
    json["interval_ns"] =
        each.summary.median_interval
            ? ordered_json{each.summary.median_interval->low, each.summary.median_interval->high}
            : ordered_json{};
    json["difference_percent"] = each.difference_percent();
    json["algorithm_bytes_per_second"] = rates.algorithm;
    json["bus_bytes_per_second"] = rates.bus;
    json["adds_up"] = each.adds_up;
    json["wrong"] = each.checks.wrong();
    json["durations_ns"] = each.durations_ns;
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace longhaul::harness
