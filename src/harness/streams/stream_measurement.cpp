#include "harness/profile/stream_measurement.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "device/cpu_devices.hpp"
#include "engine/events/op_board.hpp"
#include "plan/plan_draft.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {
namespace {

constexpr int kParts = 3;
using Blocks = std::array<plan::PlanDraft::Handle, kParts>;

/// The mean time between starts of iterations from `first` on.
Duration period_of(const std::vector<Duration>& starts, int first) {
  return (starts.back() - starts[to_size(first)]) / (std::ssize(starts) - 1 - first);
}

}  // namespace

Plan plan_of_exchange(int ranks, Bandwidth rate, int stale, const StreamSettings& settings) {
  plan::PlanDraft draft{"exchange"};
  const int half = ranks / 2;
  std::vector<Blocks> forward(to_size(ranks)), backward(to_size(ranks));
  for (int r = 0; r < ranks; ++r) {
    const Rank rank = draft.add_rank(r < half ? "east" : "west", r % half);
    const LaneId blocks =
        draft.add_lane(rank, "compute", OpKind::compute,
                       {draft.add_resource(fmt::format("device {}", r), ResourceKind::device)});
    for (int part = 0; part < kParts; ++part)
      forward[to_size(r)][to_size(part)] = draft.add_block(
          blocks, settings.forward, {BlockKind::F, 0, 1, ChunkId{part}, MicrobatchId{0}});
    for (int part = kParts; part-- > 0;)
      backward[to_size(r)][to_size(part)] = draft.add_block(
          blocks, 2 * settings.forward, {BlockKind::B, 0, 1, ChunkId{part}, MicrobatchId{0}});
  }
  const std::array links{
      draft.add_resource("link east>west", ResourceKind::shared_link, 1, Serve::deadline),
      draft.add_resource("link west>east", ResourceKind::shared_link, 1, Serve::deadline)};
  for (int r = 0; r < ranks; ++r) {
    const int other = (r + half) % ranks;
    for (int part = 0; part < kParts; ++part) {
      const LaneId sends = draft.add_lane(Rank{r}, fmt::format("send>{}/{}", other, part),
                                          OpKind::send, {links[r < half ? 0 : 1]});
      const LaneId receives =
          draft.add_lane(Rank{other}, fmt::format("recv<{}/{}", r, part), OpKind::recv);
      const auto message =
          draft.add_message(sends, receives, settings.size / rate, settings.latency, settings.size,
                            {BlockKind::B, 0, 1, ChunkId{part}, MicrobatchId{0}});
      draft.after(message.send, backward[to_size(r)][to_size(part)]);
      draft.priority(message.send, part);
      draft.after(forward[to_size(other)][to_size(part)], message.recv, 1 + stale);
    }
  }
  return draft.make();
}

StreamMeasurement measure_stream(Bandwidth rate, int stale, engine::Ranks& ranks,
                                 const StreamSettings& settings, engine::Checks& checks) {
  const Plan plan = plan_of_exchange(ranks.count(), rate, stale, settings);
  const plan::Stream stream{settings.iterations, {}};
  const OpId own_first{ops_of_rank(plan, ranks.self()).first};
  std::vector<Duration> predicted, measured;
  sim::simulate_stream(plan, stream, [&](const sim::StreamedIteration& done) {
    predicted.push_back(done.results.times[index(own_first)].start);
  });
  engine::EngineOptions options;
  options.credit = settings.credit;
  options.streams = true;
  options.fault = settings.fault;
  device::TimedDevice device;
  ranks.watchdog().watch(&plan, predicted.back());
  engine::Engine engine{plan, ranks, device, options};
  engine.run_stream(stream, 0, [&](const engine::IterationResult& result) {
    measured.push_back(result.times[index(own_first)].start);
    checks += result.checks;
  });
  ranks.watchdog().watch(nullptr, {});
  StreamMeasurement measurement{rate, stale, period_of(predicted, settings.warmup),
                                period_of(measured, settings.warmup),
                                engine.most_live_iterations()};
  measurement.measured = Duration{ranks.world().maximum(measurement.measured.count())};
  return measurement;
}

PublishingCost measure_publishing(engine::Ranks& ranks) {
  constexpr int kRounds = 200;
  constexpr std::uint32_t kOps = 500;  // the board has room for them
  engine::OpBoard board{ranks.host_ranks()};
  board.join();
  ranks.world().barrier();
  std::vector<engine::OpNews> heard;
  Duration used{};
  for (int round = 0; round < kRounds; ++round) {
    const TimePoint begin = now();
    if (ranks.is_first())
      for (std::uint32_t op = 0; op < kOps; ++op)
        board.publish({begin.count(), op, round, engine::OpNews::Kind::ended, 0});
    if (ranks.is_first()) used += now() - begin;
    ranks.world().barrier();
    const TimePoint written = now();
    heard.clear();
    board.read(heard);
    if (!ranks.is_first()) used += now() - written;
    ranks.world().barrier();
  }
  const double each = static_cast<double>(used.count()) / (kRounds * kOps);
  const auto of_all = ranks.world().all_gather(static_cast<std::int64_t>(1000 * each));
  const auto slowest = std::max_element(of_all.begin() + 1, of_all.end());
  return {static_cast<double>(of_all.front()) / 1e3,
          slowest == of_all.end() ? 0 : static_cast<double>(*slowest) / 1e3};
}

std::vector<Bandwidth> parse_rates(const std::string& list) {
  std::vector<Bandwidth> rates;
  std::stringstream in{list};
  for (std::string item; std::getline(in, item, ',');) rates.push_back(parse_bandwidth(item));
  if (rates.empty()) fail("no rates given. Write --rates 10Gbps,40Gbps.");
  return rates;
}

std::string stream_table(const std::vector<StreamMeasurement>& measurements) {
  Table table{
      {{"rate"}, {"stale"}, {"predicted [ms]"}, {"measured [ms]"}, {"difference"}, {"in memory"}}};
  const auto ms = [](Duration time) {
    return fmt::format("{:.3f}", static_cast<double>(time.count()) / 1e6);
  };
  for (const StreamMeasurement& each : measurements)
    table.add_row({to_text(each.rate), std::to_string(each.stale), ms(each.predicted),
                   ms(each.measured), fmt::format("{:+.2f}%", 100 * each.difference()),
                   std::to_string(each.live)});
  return table.text();
}

}  // namespace longhaul::harness
