#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "engine/payloads/sent_sizes.hpp"
#include "harness/options/credit.hpp"
#include "harness/profile/link_measurement.hpp"
#include "report/record_file.hpp"

namespace longhaul::harness {
namespace {

nlohmann::ordered_json stopped_of(const LinkMeasurement& m, const StoppingRule& rule) {
  return stopped_json(rule, std::vector<double>{m.samples_ns.begin(), m.samples_ns.end()});
}

/// Of the median: unlike percents it does not shrink where targets are long.
std::int64_t error_ns(const LinkMeasurement& m) {
  const double median = summarize({m.samples_ns.begin(), m.samples_ns.end()}).median;
  return std::llround(median) - m.target.count();
}

}  // namespace

nlohmann::ordered_json link_record(const LinkRun& run,
                                   const std::vector<LinkMeasurement>& measurements,
                                   const nlohmann::json& environment,
                                   const engine::Checks& checks) {
  nlohmann::ordered_json record = report::record_header(
      {.benchmark = "bench_link", .numbers = "measured", .command_line = run.command_line});
  record["payload_bytes"] = run.settings.payload.count();
  record["lateness_credit_ns"] = run.settings.credit.count();
  record["message_bytes"] = run.settings.size.count();
  record["stopping"] = rule_json(run.rule);
  record["check"] = checks.wrong() == 0 ? "ok" : "wrong";
  record["environment"] = environment;
  for (const LinkMeasurement& m : measurements) {
    record["measurements"].push_back({{"test", to_string(m.test)},
                                      {"target_ns", m.target.count()},
                                      {"n", m.samples_ns.size()},
                                      {"stopped", stopped_of(m, run.rule)},
                                      {"error_median_percent", m.error_percent.median},
                                      {"error_p95_percent", m.error_percent.p95},
                                      {"error_median_ns", error_ns(m)},
                                      {"credit", credit_json(m.credit)},
                                      {"samples_ns", m.samples_ns}});
  }
  return record;
}

std::string link_table(const std::vector<LinkMeasurement>& measurements,
                       const LinkSettings& settings) {
  Table table{{{"test", Align::left},
               {"target"},
               {"n"},
               {"median"},
               {"p95"},
               {"median error %"},
               {"p95 error %"},
               {"median error us"},
               {"credit"}}};
  for (const LinkMeasurement& m : measurements) {
    const SampleSummary times = summarize({m.samples_ns.begin(), m.samples_ns.end()});
    const auto text = [](double ns) { return to_text(Duration{static_cast<std::int64_t>(ns)}); };
    table.add_row(
        {to_string(m.test), to_text(m.target), std::to_string(times.n), text(times.median),
         text(times.p95), fmt::format("{:+.2f}", m.error_percent.median),
         fmt::format("{:+.2f}", m.error_percent.p95),
         fmt::format("{:+.1f}", static_cast<double>(error_ns(m)) / 1e3), to_text(m.credit.total)});
  }
  const engine::SentSize size{std::min(settings.payload, settings.size), settings.size};
  return table.text() + (size.is_whole() ? to_text(size.nominal) + " sent whole\n"
                                         : fmt::format("sent {} of {} (--payload)\n",
                                                       to_text(size.sent), to_text(size.nominal)));
}

std::string link_csv(const std::vector<LinkMeasurement>& measurements) {
  std::string text = "test,target_ns,sample_ns,error_percent\n";
  for (const LinkMeasurement& m : measurements)
    for (const std::int64_t sample : m.samples_ns)
      text += fmt::format("{},{},{},{:.4f}\n", to_string(m.test), m.target.count(), sample,
                          error_percent(sample, m.target));
  return text;
}

}  // namespace longhaul::harness
