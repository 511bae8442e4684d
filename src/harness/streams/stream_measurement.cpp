#include "harness/streams/stream_measurement.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "device/cpu_devices.hpp"
#include "engine/events/op_board.hpp"
#include "plan/critical_messages.hpp"
#include "plan/plan_draft.hpp"
#include "plan/rows.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {
namespace {

constexpr int kParts = 3;
/// Iterations at the end of a stream over which its critical path is followed.
constexpr std::size_t kLookedBack = 16;
using Blocks = std::array<plan::PlanDraft::Handle, kParts>;

/// When iterations start: memory does not grow with their number.
class Starts {
public:
  explicit Starts(int first) : first_{first} {}
  void add(int iteration, Duration start) {
    if (iteration == first_) first_start_ = start;
    last_ = iteration;
    last_start_ = start;
  }
  [[nodiscard]] int periods() const { return std::max(last_ - first_, 0); }
  /// The mean time between two of them.
  [[nodiscard]] Duration period() const { return (last_start_ - first_start_) / periods(); }
  [[nodiscard]] Duration last() const { return last_start_; }

private:
  int first_, last_ = 0;
  Duration first_start_{}, last_start_{};
};

/// After the last B of a rank; one of them can never end by its deadline.
void add_host_tasks(plan::PlanDraft& draft, Rank rank, const Blocks& backward, Duration takes) {
  const LaneId host = draft.add_lane(
      rank, "host", OpKind::compute,
      {draft.add_resource(fmt::format("workers {}", index(rank)), ResourceKind::workers)});
  const auto log = draft.add_block(host, takes);
  const auto late = draft.add_block(host, takes);
  for (const auto task : {log, late}) draft.after(task, backward.front());
  draft.window(log, Duration{});
  draft.window(late, Duration{}, takes / 2);
}

}  // namespace

Plan plan_of_exchange(int ranks, const StreamCase& of, const StreamSettings& settings) {
  plan::PlanDraft draft{fmt::format("exchange at {}, stale {}", to_text(of.rate), of.stale)};
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
    if (settings.extras) add_host_tasks(draft, rank, backward[to_size(r)], settings.forward);
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
          draft.add_message(sends, receives, settings.size / of.rate, settings.latency,
                            settings.size, {BlockKind::B, 0, 1, ChunkId{part}, MicrobatchId{0}});
      draft.after(message.send, backward[to_size(r)][to_size(part)]);
      draft.priority(message.send, part);
      draft.after(forward[to_size(other)][to_size(part)], message.recv, 1 + of.stale);
      if (settings.extras && part == kParts - 1)
        draft.meets(forward[to_size(other)].front(), message.recv, 1);
    }
  }
  return draft.make();
}

void append_predicted(Timeline& timeline, const Plan& plan, int iterations) {
  sim::simulate_stream(plan, {iterations, {}}, [&](const sim::StreamedIteration& done) {
    OpResults results = done.results;
    Duration begin = Duration::max();
    for (std::size_t i = 0; i < results.times.size(); ++i)
      if (results.outcomes.empty() || has_run(results.outcomes[i]))
        begin = std::min(begin, results.times[i].start);
    for (OpTime& time : results.times)
      for (Duration* stamp : {&time.ready, &time.start, &time.end})
        *stamp = std::max(*stamp - begin, Duration::zero());
    plan::append_rows(timeline, plan, results, done.iteration);
  });
}

std::optional<Duration> StreamMeasurement::late_per_message() const {
  if (periods == 0) return std::nullopt;
  return plan::late_per_message(static_cast<double>(measured.count()), predicted, messages);
}

StreamMeasurement measure_stream(const StreamCase& of, const PlannedStream& planned,
                                 engine::Ranks& ranks, const StreamSettings& settings,
                                 engine::Checks& checks) {
  const Plan& plan = planned.plan;
  const plan::Stream stream{settings.iterations, {}, planned.first};
  const OpId own_first{ops_of_rank(plan, ranks.self()).first};
  std::vector<OpTimes> latest;  // as simulated
  Starts predicted{planned.first + settings.warmup}, measured{planned.first + settings.warmup};
  sim::simulate_stream(plan, stream, [&](const sim::StreamedIteration& done) {
    predicted.add(done.iteration, done.results.times[index(own_first)].start);
    if (latest.size() == kLookedBack) latest.erase(latest.begin());
    latest.push_back(done.results.times);
  });
  engine::EngineOptions options;
  options.credit = settings.credit;
  options.streams = true;
  options.fault = settings.fault;
  device::TimedDevice device;
  ranks.watchdog().watch(&plan, predicted.last());
  engine::Engine engine{plan, ranks, device, options};
  engine.run_stream(stream, 0, [&](const engine::IterationResult& result) {
    measured.add(result.iteration, result.times[index(own_first)].start);
    checks += result.checks;
    if (planned.keep) planned.keep(result);
  });
  ranks.watchdog().watch(nullptr, {});
  StreamMeasurement measurement{
      of, planned.first, measured.periods(), {}, {}, 0, engine.most_live_iterations()};
  if (measurement.periods == 0) return measurement;
  measurement.messages = plan::messages_on_critical_path(plan, latest, own_first);
  measurement.predicted = predicted.period();
  measurement.measured = Duration{ranks.world().maximum(measured.period().count())};
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
  Table table{{{"rate"},
               {"stale"},
               {"predicted [ms]"},
               {"measured [ms]"},
               {"difference"},
               {"us/hop"},
               {"in memory"}}};
  const auto ms = [](Duration time) {
    return fmt::format("{:.3f}", static_cast<double>(time.count()) / 1e6);
  };
  for (const StreamMeasurement& each : measurements)
    table.add_row({to_text(each.of.rate), std::to_string(each.of.stale),
                   each.periods == 0 ? "-" : ms(each.predicted),
                   each.periods == 0 ? "-" : ms(each.measured),
                   each.periods == 0 ? "-" : fmt::format("{:+.2f}%", 100 * each.difference()),
                   plan::late_text(each.late_per_message()), std::to_string(each.live)});
  return table.text();
}

}  // namespace longhaul::harness
