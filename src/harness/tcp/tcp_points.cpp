#include <cmath>

#include "base/unit_text.hpp"
#include "harness/tcp/tcp_run.hpp"
#include "trace/report/report.hpp"
#include "wan_emulator/forwarder.hpp"

namespace longhaul::harness {
namespace {

constexpr double kSmallScale = 0.2;

double choose_scale(const TcpSettings& settings, const wan_emulator::Ceiling& ceiling) {
  if (settings.scale > 0) return settings.scale;
  return ceiling.rate.bits_per_second() >=
                 wan_emulator::kBelowCeiling * settings.cap.bits_per_second()
             ? 1
             : kSmallScale;
}

Bandwidth expected_rate(const TcpRun& run, int connections, Duration latency) {
  if (run.window == Bytes{0}) return run.cap;
  const double seconds = std::chrono::duration<double>(2 * latency).count();
  const double windows = connections * 8.0 * static_cast<double>(run.window.count()) / seconds;
  return std::min(run.cap, Bandwidth{windows});
}

TcpPoint measure_point(const TcpSettings& settings, TcpRun& run, Duration latency,
                       int connections) {
  TcpPoint point{latency, connections, expected_rate(run, connections, latency), {}, {}, {}};
  wan_emulator::ForwarderSettings forwarder = settings.forwarder;
  forwarder.wan.all.latency = latency;
  forwarder.wan.node = run.cap;
  wan_emulator::FlowSettings flows = settings.flows;
  flows.connections = connections;
  flows.window = run.window;
  for (Bytes* buffer : {&flows.send_buffer, &flows.receive_buffer})
    if (*buffer == Bytes{0}) *buffer = run.window * 2;
  for (int i = 0; i < settings.repetitions; ++i) {
    forwarder.wan.seed = settings.forwarder.wan.seed + static_cast<std::uint64_t>(i);
    const wan_emulator::WideArea wan{forwarder};
    point.repetitions.push_back(wan_emulator::measure_flows(wan.site(0), wan.site(1), flows));
    if (const std::string problem = wan.forwarder().problem(); !problem.empty())
      throw Error{problem, ExitCode::run_failed};
    const wan_emulator::ForwarderReport report = wan.report();
    point.path = report.paths[1];
    point.lateness = report.lateness;
    run.realtime = wan.forwarder().is_realtime();
  }
  return point;
}

}  // namespace

std::vector<double> TcpPoint::rates() const {
  std::vector<double> rates;
  for (const wan_emulator::FlowResult& result : repetitions)
    rates.push_back(result.rate().bits_per_second());
  return rates;
}

double TcpPoint::median_rate() const { return summarize(rates()).median; }

int connections_to_fill(Bandwidth cap, Bytes window, Duration latency) {
  const double seconds = std::chrono::duration<double>(2 * latency).count();
  const double each = 8.0 * static_cast<double>(window.count()) / seconds;
  return std::max(1, static_cast<int>(std::ceil(cap.bits_per_second() / each)));
}

TcpRun measure_points(const TcpSettings& settings,
                      const std::function<void(const std::string&)>& note) {
  TcpRun run;
  note("ceiling");
  run.ceiling = wan_emulator::measure_ceiling(settings.forwarder.mtu);
  run.scale = choose_scale(settings, run.ceiling);
  run.cap = Bandwidth{settings.cap.bits_per_second() * run.scale};
  run.window = Bytes{std::llround(static_cast<double>(settings.window.count()) * run.scale)};
  for (const int asked : settings.connections)
    for (const Duration latency : settings.latencies) {
      const int count = asked > 0 ? asked : connections_to_fill(run.cap, run.window, latency);
      note(fmt::format("{}, {} connections", to_text(latency), count));
      run.points.push_back(measure_point(settings, run, latency, count));
    }
  return run;
}

Shape shape_of(const TcpRun& run) {
  Shape shape;
  const auto against = [&](const std::string& what) {
    shape.holds = false;
    shape.remarks.push_back(what);
  };
  double least = INFINITY, most = 0;  // of rate times latency, the same at all latencies
  for (const TcpPoint& point : run.points) {
    if (point.expected < run.cap && point.connections == 1) {
      const double product = point.median_rate() * static_cast<double>(point.latency.count());
      least = std::min(least, product);
      most = std::max(most, product);
    } else if (point.expected == run.cap) {
      const double reached = point.median_rate() / run.cap.bits_per_second();
      if (run.ceiling.rate.bits_per_second() <
          wan_emulator::kBelowCeiling * run.cap.bits_per_second())
        shape.remarks.push_back(
            fmt::format("{} connections at {}: not judged, the cap is too "
                        "near to the forwarder's ceiling",
                        point.connections, to_text(point.latency)));
      else if (reached < 0.8)
        against(fmt::format("{} connections at {} reach {:.0f}% of the cap, not 80%",
                            point.connections, to_text(point.latency), 100 * reached));
    }
  }
  if (most > 1.2 * least)
    against(fmt::format("rate times latency of one connection varies by {:.0f}%, not by 20%",
                        100 * (most / least - 1)));
  return shape;
}

}  // namespace longhaul::harness
