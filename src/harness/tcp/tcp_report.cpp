#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "harness/environment/facts.hpp"
#include "harness/tcp/tcp_run.hpp"
#include "report/record_file.hpp"
#include "trace/report/report.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

double mbps(double bits_per_second) { return bits_per_second / 1e6; }

ordered_json to_json(const wan_emulator::FlowState& flow) {
  return {{"bytes", flow.bytes},
          {"smoothed_rtt_ns", flow.smoothed_rtt.count()},
          {"least_rtt_ns", flow.least_rtt.count()},
          {"congestion_window_bytes", flow.congestion_window_bytes},
          {"advertised_window_bytes", flow.advertised_window_bytes},
          {"retransmitted_segments", flow.retransmits},
          {"busy_ns", flow.busy.count()},
          {"window_limited_ns", flow.window_limited.count()},
          {"buffer_limited_ns", flow.buffer_limited.count()},
          {"send_buffer_bytes", flow.send_buffer_bytes},
          {"receive_buffer_bytes", flow.receive_buffer_bytes},
          {"congestion_control", flow.congestion_control}};
}

ordered_json to_json(const wan_emulator::FlowResult& result) {
  ordered_json json = {{"elapsed_ns", result.elapsed.count()},
                       {"rate_bits_per_second", result.rate().bits_per_second()},
                       {"variation_percent", result.variation_percent()},
                       {"retransmitted_segments", result.retransmits()},
                       {"interval_bytes", result.interval_bytes}};
  for (const wan_emulator::FlowState& flow : result.flows) json["flows"].push_back(to_json(flow));
  return json;
}

ordered_json to_json(const TcpPoint& point) {
  ordered_json json = {
      {"latency_ns", point.latency.count()},
      {"connections", point.connections},
      {"expected_bits_per_second", point.expected.bits_per_second()},
      {"median_bits_per_second", point.median_rate()},
      {"forwarder", ordered_json{{"packets", point.path.packets},
                                 {"lost", point.path.lost},
                                 {"dropped", point.path.dropped},
                                 {"late_p99_ns", point.lateness.quantile(0.99).count()},
                                 {"late_max_ns", point.lateness.longest.count()}}}};
  for (const wan_emulator::FlowResult& result : point.repetitions)
    json["repetitions"].push_back(to_json(result));
  return json;
}

/// The repetition whose rate is nearest to the median.
const wan_emulator::FlowResult& middle(const TcpPoint& point) {
  const double median = point.median_rate();
  return *std::min_element(point.repetitions.begin(), point.repetitions.end(),
                           [&](const auto& a, const auto& b) {
                             return std::abs(a.rate().bits_per_second() - median) <
                                    std::abs(b.rate().bits_per_second() - median);
                           });
}

/// Table 1's rates are about 12 Mbit a one-way latency: 3 MB a round trip.
constexpr double kPublishedWindow = 3e6;

double factor_of_published(const TcpRun& run) {
  return run.window == Bytes{0} ? 1 : static_cast<double>(run.window.count()) / kPublishedWindow;
}

std::vector<std::string> row_of(const TcpPoint& point, double factor) {
  const SampleSummary rates = summarize(point.rates());
  const std::vector<double> all = point.rates();
  const wan_emulator::FlowResult& result = middle(point);
  const wan_emulator::FlowState& flow = result.flows.front();
  const auto published = published_mbps(point.latency);
  const auto number = [](double value) { return fmt::format("{:.0f}", value); };
  return {to_text(point.latency),
          std::to_string(point.connections),
          number(mbps(point.expected.bits_per_second())),
          number(mbps(rates.median)),
          fmt::format("{:.0f}-{:.0f}", mbps(rates.min),
                      mbps(*std::max_element(all.begin(), all.end()))),
          point.connections == 1 && published ? number(*published * factor) : "",
          fmt::format("{:.1f}", result.variation_percent()),
          std::to_string(result.retransmits()),
          to_text(flow.smoothed_rtt),
          to_text(Bytes{flow.congestion_window_bytes}),
          to_text(Bytes{flow.advertised_window_bytes})};
}

}  // namespace

std::optional<double> published_mbps(Duration latency) {
  struct Published {
    Duration latency;
    double mbps;
  };
  for (const Published row :
       {Published{10ms, 1220}, Published{20ms, 600}, Published{30ms, 396}, Published{40ms, 293}})
    if (row.latency == latency) return row.mbps;
  return std::nullopt;
}

ordered_json machine_now() {
  utsname system{};
  ::uname(&system);
  std::array<double, 3> load{};
  if (::getloadavg(load.data(), 3) < 0) load = {};
  return {{"kernel", fmt::format("{} {}", system.sysname, system.release)},
          {"processors", std::thread::hardware_concurrency()},
          {"load_average", load}};
}

ordered_json load_of(const std::vector<ordered_json>& looks) {
  std::array<double, 3> largest{};
  for (const ordered_json& look : looks)
    for (std::size_t i = 0; i < largest.size(); ++i)
      largest[i] = std::max(largest[i], look["load_average"][i].get<double>());
  return {{"before", looks.front()["load_average"]},
          {"during", largest},
          {"after", looks.back()["load_average"]}};
}

std::string table_of(const TcpRun& run) {
  const double factor = factor_of_published(run);
  Table table{{{"latency"},
               {"connections"},
               {"expected Mbps"},
               {"median Mbps"},
               {"range"},
               {factor == 1 ? "table 1" : "table 1, scaled"},
               {"variation %"},
               {"resent"},
               {"srtt"},
               {"cwnd"},
               {"window"}}};
  for (const TcpPoint& point : run.points) table.add_row(row_of(point, factor));
  std::string text = table.text();
  text += fmt::format("cap {}, window {} (scale {:g}); ceiling of the forwarder: {}\n",
                      to_text(run.cap), to_text(run.window), run.scale, run.ceiling.text());
  const Shape shape = shape_of(run);
  text += fmt::format("shape of table 1 and figure 5: {}\n",
                      shape.holds ? "as published" : "NOT as published");
  for (const std::string& remark : shape.remarks) text += "  " + remark + "\n";
  return text;
}

std::string csv_of(const TcpRun& run) {
  std::string text =
      "latency_ns,connections,repetition,scale,cap_bits_per_second,expected_bits_per_second,"
      "rate_bits_per_second,variation_percent,retransmitted_segments\n";
  for (const TcpPoint& point : run.points)
    for (std::size_t i = 0; i < point.repetitions.size(); ++i) {
      const wan_emulator::FlowResult& result = point.repetitions[i];
      text += fmt::format("{},{},{},{:g},{:.0f},{:.0f},{:.0f},{:.3f},{}\n", point.latency.count(),
                          point.connections, i, run.scale, run.cap.bits_per_second(),
                          point.expected.bits_per_second(), result.rate().bits_per_second(),
                          result.variation_percent(), result.retransmits());
    }
  return text;
}

ordered_json record_of(const TcpRun& run, const TcpOptions& options,
                       std::vector<ordered_json> looks) {
  looks.push_back(machine_now());
  const Shape shape = shape_of(run);
  ordered_json record = report::record_header(
      {.benchmark = "bench_tcp", .numbers = "measured", .command_line = options.command_line});
  record["check"] = shape.holds ? "ok" : "wrong";
  record["remarks"] = shape.remarks;
  record["environment"] = local_environment(options.command_line);
  record["environment"]["before"] = looks.front();
  record["environment"]["after"] = looks.back();
  record["environment"]["load_average"] = load_of(looks);
  record["wan"] = {{"with", "tun"},
                   {"realtime", run.realtime},
                   {"mtu_bytes", options.mtu},
                   {"queue_bytes", parse_bytes(options.queue).count()},
                   {"loss", options.loss},
                   {"seed", options.seed},
                   {"ceiling_bits_per_second", run.ceiling.rate.bits_per_second()},
                   {"ceiling_packets_per_second", run.ceiling.packets_per_second}};
  record["message_bytes"] = wan_emulator::kFlowWrite.count();
  record["payload_bytes"] = wan_emulator::kFlowWrite.count();
  record["scale"] = run.scale;
  record["cap_bits_per_second"] = run.cap.bits_per_second();
  record["window_bytes"] = run.window.count();
  for (const TcpPoint& point : run.points) record["points"].push_back(to_json(point));
  return record;
}

}  // namespace longhaul::harness
