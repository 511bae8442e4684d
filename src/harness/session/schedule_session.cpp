#include "harness/session/schedule_session.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "harness/session/check_report.hpp"
#include "plan/critical_messages.hpp"
#include "plan/plan.hpp"
#include "plan/rows.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::harness {
namespace {

/// This rank's stamps on rank 0's clock.
void align(OpTimes& times, OpRange range, Duration offset) {
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
    times[i].ready += offset;
    times[i].start += offset;
    times[i].end += offset;
  }
}

/// When the first of these ops starts and the last one ends, moved by `offset`.
std::pair<Duration, Duration> ends_of(const OpTimes& times, OpRange range, Duration offset) {
  Duration first = Duration::max(), last = Duration::min();
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
    first = std::min(first, times[i].start + offset);
    last = std::max(last, times[i].end + offset);
  }
  return {first, last};
}

/// Rank 0 gets the times of all ranks' ops, from the first op's start on; the others nothing. A
/// rank's ops lie together and ranks ascend, so the parts make up the whole.
OpTimes gather_times(const engine::Ranks& ranks, const Plan& plan, const OpTimes& mine) {
  const OpRange range = ops_of_rank(plan, ranks.self());
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(
      std::as_bytes(std::span{mine}.subspan(range.first, range.count)), counts);
  if (!ranks.is_first()) return {};
  OpTimes all(bytes.size() / sizeof(OpTime));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  start_at_zero(all);
  return all;
}

engine::Checks sum_of(const comm::Communicator& world, const engine::Checks& mine) {
  engine::Checks sum;
  sum.messages = world.sum(mine.messages);
  for (std::size_t leg = 0; leg < sum.of_leg.size(); ++leg)
    sum.of_leg[leg] = world.sum(mine.of_leg[leg]);
  sum.relayed = world.sum(mine.relayed);
  sum.relayed_bytes = world.sum(mine.relayed_bytes);
  sum.blocks = world.sum(mine.blocks);
  sum.lost = world.sum(mine.lost);
  sum.mixed_up = world.sum(mine.mixed_up);
  sum.corrupted = world.sum(mine.corrupted);
  sum.out_of_order = world.sum(mine.out_of_order);
  sum.unclaimed = world.sum(mine.unclaimed);
  sum.wrong_tensors = world.sum(mine.wrong_tensors);
  return sum;
}

engine::LeaseCost sum_of(const comm::Communicator& world, const engine::LeaseCost& mine) {
  return {world.sum(mine.leases),
          Duration{world.sum(mine.total.count())},
          Duration{world.maximum(mine.longest.count())},
          world.sum(mine.by_words),
          Duration{world.sum(mine.words_total.count())},
          Duration{world.maximum(mine.words_longest.count())}};
}

using Outcome = IterationOutcome;

/// The iteration whose makespan is nearest to the median.
const Outcome& typical(const std::vector<Outcome>& outcomes, double median) {
  return *std::ranges::min_element(outcomes, {}, [&](const Outcome& outcome) {
    return std::abs(static_cast<double>(outcome.report.makespan_ns) - median);
  });
}

report::ScheduleRecord record_of(const Outcome& outcome, const PlannedSchedule& planned,
                                 const Scenario& scenario) {
  report::ScheduleRecord record =
      report::make_record(outcome.report, planned.schedule, scenario,
                          planned.overlap ? report::Bounds::left_out : report::Bounds::computed);
  record.resources = outcome.resources;
  return record;
}

double percent_above(double measured_ns, Duration expected) {
  return expected > Duration::zero()
             ? 100.0 * (measured_ns / static_cast<double>(expected.count()) - 1.0)
             : 0.0;
}

/// Makespan of the plan with its slow devices; nullopt where none is slow.
std::optional<Duration> straggling_makespan(const Plan& plan, const Run& run) {
  if (std::ranges::all_of(run.stragglers, [](double factor) { return factor == 1.0; }))
    return std::nullopt;
  return std::ranges::max(sim::simulate(plan::with_stragglers(plan, run)), {}, &OpTime::end).end;
}

/// Mean planned time of the blocks that take any; 0 of none.
Duration mean_block(const Plan& plan) {
  Duration total{};
  std::int64_t blocks = 0;
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::compute || op.duration <= Duration::zero()) continue;
    total += op.duration;
    ++blocks;
  }
  return blocks > 0 ? total / blocks : Duration::zero();
}

Bytes largest_message(const Plan& plan) {
  Bytes largest{};
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::send) largest = std::max(largest, op.size);
  return largest;
}

/// By how much a rank may be slower than its prediction: that knows neither noise nor stragglers.
int slowness(const Run& run) {
  double factor = 1.0;
  for (const double straggler : run.stragglers) factor = std::max(factor, straggler);
  return 2 * static_cast<int>(std::ceil(factor));
}

/// The times of all of this host's ranks, on its first one; ops of others are left alone.
OpTimes gather_on_host(const comm::HostRanks& host_ranks, const Plan& plan, const OpTimes& mine) {
  const OpRange range = ops_of_rank(plan, host_ranks.self());
  std::vector<int> counts;
  const auto bytes = host_ranks.host().gather(
      std::as_bytes(std::span{mine}.subspan(range.first, range.count)), counts);
  if (host_ranks.self() != host_ranks.local().front()) return {};
  OpTimes all(plan.ops.size());
  const std::byte* at = bytes.data();
  for (const Rank rank : host_ranks.local()) {
    const OpRange ops = ops_of_rank(plan, rank);
    std::memcpy(all.data() + ops.first, at, ops.count * sizeof(OpTime));
    at += ops.count * sizeof(OpTime);
  }
  return all;
}

/// On a network as it is no message holds what the plan names: two may be on their way at once.
void leave_resources_out(Timeline& timeline) {
  for (TimelineRow& row : timeline.rows)
    if (row.kind == RowKind::send || row.kind == RowKind::recv) row.resource = -1;
}

/// Writes what the ranks of this host did in an iteration into one file: its first rank does.
/// Collective over them. `times` are of this rank's ops, on rank 0's clock; all of the run's hosts
/// have written when rank 0 has heard of all of them.
void write_host_segment(const engine::Ranks& ranks, const Plan& plan, const OpTimes& times,
                        const std::filesystem::path& directory, const IterationKey& key,
                        bool emulates) {
  const comm::HostRanks& host_ranks = ranks.host_ranks();
  const OpTimes all = gather_on_host(host_ranks, plan, times);
  if (all.empty()) return;
  Timeline rows;
  std::vector<int> local;
  for (const Rank rank : host_ranks.local()) local.push_back(static_cast<int>(rank));
  if (host_ranks.all_local()) {
    plan::append_rows(rows, plan, all, key.iteration);
  } else {
    for (const Rank rank : host_ranks.local())
      plan::append_rows(rows, plan, all, key.iteration, rank);
  }
  if (!emulates) leave_resources_out(rows);
  trace::write_segment(directory, key, local, rows);
}

/// Of all orders and partitions of the row's operators and collectives, in place of a bound of
/// schedules of blocks. What it holds in memory is the overlap's to say, too.
void put_bound(PipelineMeasurement& measurement) {
  const planner::OverlapResult& result = measurement.overlap->predicted;
  measurement.memory.clear();
  for (report::ScheduleRecord* record : {&measurement.predicted, &measurement.measured}) {
    record->bound = planner::Bound{
        result.bound.lower_bound,
        fmt::format("operators and collectives of {}", to_string(result.parallel.gradient_sync)),
        result.bound.reason};
    record->too_large.clear();
  }
}

}  // namespace

void start_at_zero(OpTimes& times) {
  if (times.empty()) return;
  const Duration begin = std::ranges::min_element(times, {}, &OpTime::start)->start;
  align(times, {0, static_cast<std::uint32_t>(times.size())}, -begin);
}

IterationOutcome outcome_of(const Plan& plan, const OpTimes& times, int iteration,
                            const Scenario& scenario) {
  Timeline timeline;
  plan::append_rows(timeline, plan, times, iteration);
  Outcome outcome{
      trace::report_iteration(timeline, 0, iteration, scenario.activation_budget().count()),
      plan::occupancy(plan, times)};
  std::erase_if(outcome.resources,
                [](const plan::ResourceUse& use) { return use.kind == ResourceKind::device; });
  return outcome;
}

void add(engine::IterationResult& sums, const engine::IterationResult& result) {
  sums.checks += result.checks;
  sums.lease += result.lease;
  sums.lateness += result.lateness;
  sums.credit += result.credit;
  sums.transfers += result.transfers;
  sums.transfer_total += result.transfer_total;
  sums.transfer_longest = std::max(sums.transfer_longest, result.transfer_longest);
}

ScheduleSession::ScheduleSession(engine::Ranks& ranks, const PlannedSchedule& planned,
                                 const Scenario& scenario, int position,
                                 const engine::EngineOptions& options, const PipelineSinks& sinks,
                                 DeviceKind device, TrainingSession* real)
    : ranks_{ranks},
      planned_{planned},
      scenario_{scenario},
      position_{position},
      sinks_{sinks},
      emulates_{options.emulation == engine::Emulation::on},
      computing_{ranks, planned, scenario, options, device, real},
      engine_{planned.plan, ranks, computing_.device(), computing_.data_plane(), options},
      weather_{planned.plan, scenario, options.emulation},
      longest_wait_{slowness(options.run) *
                    engine::longest_wait(planned.plan, planned.predicted, ranks.self())},
      predicted_{std::ranges::max_element(planned.predicted, {}, &OpTime::end)->end} {
  if (weather_.played() != nullptr) measurement_.weather.emplace();
}

void ScheduleSession::take(const EarlierIterations& earlier) {
  if (!ranks_.is_first()) return;
  add(sums_, earlier.sums);
  measurement_.wrong_messages = earlier.wrong_messages;
  outcomes_ = earlier.outcomes;
  if (!measurement_.weather) return;
  for (std::size_t i = 0; i < earlier.weather_ages.size(); ++i)
    (void)predict(static_cast<int>(i), earlier.weather_ages[i]);
}

IterationTimes ScheduleSession::iterate(int iteration, TimePoint weather_began) {
  if (computing_.real() != nullptr) computing_.real()->begin_iteration(iteration);
  ranks_.watchdog().watch(&planned_.plan, longest_wait_in(iteration, weather_began));
  engine::IterationResult result = engine_.run(iteration, {weather_.played(), weather_began});
  ranks_.watchdog().watch(&planned_.plan, {});
  result.end = {result.end.seen + sinks_.clock.offset, result.end.shadow + sinks_.clock.offset};
  if (computing_.real() != nullptr) computing_.real()->end_iteration(iteration, result.checks);
  count(result);
  if (sinks_.note) {
    const auto [first, last] =
        ends_of(result.times, ops_of_rank(planned_.plan, ranks_.self()), sinks_.clock.offset);
    sinks_.note({position_, iteration, planned_.plan.schedule, predicted_, first, last, result});
  }
  IterationTimes all;
  if (iteration >= 0) all = keep(iteration, result);
  if (sinks_.iteration_done) sinks_.iteration_done(planned_.plan.schedule);
  return all;
}

void ScheduleSession::count(const engine::IterationResult& result) {
  add(sums_, result);
  static constexpr std::size_t kNamed = 8;
  for (const engine::WrongMessage& wrong : result.wrong)
    if (wrong_.size() < kNamed) wrong_.push_back(wrong);
}

/// The watchdog waits as long as the weather makes this rank wait.
Duration ScheduleSession::longest_wait_in(int iteration, TimePoint weather_began) const {
  if (weather_.played() == nullptr) return longest_wait_;
  return slowness(scenario_.run) * weather_.longest_wait(iteration, weather_began, ranks_.self());
}

/// On rank 0.
OpTimes ScheduleSession::predict(int iteration, Duration age) {
  if (!measurement_.weather) return planned_.predicted;
  OpTimes times = weather_.predict(iteration, age);
  measurement_.weather->begins.push_back(age);
  measurement_.weather->predicted.push_back(std::ranges::max_element(times, {}, &OpTime::end)->end);
  return times;
}

IterationTimes ScheduleSession::keep(int iteration, engine::IterationResult& result) {
  OpTimes& times = result.times;
  align(times, ops_of_rank(planned_.plan, ranks_.self()), sinks_.clock.offset);
  if (!sinks_.directory.empty())
    write_host_segment(ranks_, computing_.measured_plan(), times, sinks_.directory,
                       {position_, iteration}, emulates_);
  const Duration seen{ranks_.world().maximum(result.end.seen.count())};
  const Duration shadow{ranks_.world().maximum(result.end.shadow.count())};
  IterationTimes all{gather_times(ranks_, planned_.plan, times), {}};
  if (!ranks_.is_first()) return all;
  all.predicted = predict(iteration, result.weather_age);
  if (outcomes_.empty()) measurement_.first_iteration = iteration;
  outcomes_.push_back(outcome_of(computing_.measured_plan(), all.measured, iteration, scenario_));
  outcomes_.back().credit_lag = shadow - seen;
  outcomes_.back().exposure = exposure_of(planned_, all.measured);
  return all;
}

std::vector<double> ScheduleSession::makespans_ns() const {
  std::vector<double> makespans;
  for (const Outcome& outcome : outcomes_)
    makespans.push_back(static_cast<double>(outcome.report.makespan_ns));
  return makespans;
}

PipelineMeasurement ScheduleSession::finish() {
  const auto& world = ranks_.world();
  // No rank sends between these two barriers: a message on its way now belongs to no receive.
  world.barrier();
  sums_.checks.unclaimed += ranks_.transport().unclaimed();
  world.barrier();
  measurement_.checks = sum_of(world, sums_.checks);
  for (std::string& wrong : gather_wrong_messages(ranks_, planned_.plan, wrong_))
    measurement_.wrong_messages.push_back(std::move(wrong));
  measurement_.lease = sum_of(world, sums_.lease);
  measurement_.lateness = {world.sum(sums_.lateness.blocks),
                           Duration{world.sum(sums_.lateness.total.count())},
                           Duration{world.maximum(sums_.lateness.longest.count())}};
  measurement_.credit = {world.sum(sums_.credit.ops), world.sum(sums_.credit.credited),
                         Duration{world.sum(sums_.credit.total.count())},
                         Duration{world.maximum(sums_.credit.largest.count())}};
  measurement_.transfers = world.sum(sums_.transfers);
  measurement_.transfer_total = Duration{world.sum(sums_.transfer_total.count())};
  measurement_.transfer_longest = Duration{world.maximum(sums_.transfer_longest.count())};
  if (computing_.real() != nullptr) measurement_.real = computing_.real()->finish();
  if (measurement_.real)
    for (const std::string& wrong : measurement_.real->wrong)
      measurement_.wrong_messages.push_back(wrong);
  if (ranks_.is_first()) summarize_outcomes();
  if (ranks_.is_first() && sinks_.note_end) sinks_.note_end(position_, measurement_);
  return std::move(measurement_);
}

void ScheduleSession::summarize_outcomes() {
  measurement_.makespans_ns = makespans_ns();
  measurement_.summary = summarize(measurement_.makespans_ns);
  for (const Outcome& outcome : outcomes_)
    measurement_.without_credit_ns.push_back(
        static_cast<double>(outcome.report.makespan_ns + outcome.credit_lag.count()));
  measurement_.critical_messages =
      plan::messages_on_critical_path(planned_.plan, planned_.predicted);
  const Outcome& shown = typical(outcomes_, measurement_.summary.median);
  measurement_.measured = record_of(shown, planned_, scenario_);
  measurement_.predicted =
      record_of(outcome_of(planned_.plan, planned_.predicted, 0, scenario_), planned_, scenario_);
  measurement_.straggling = straggling_makespan(planned_.plan, scenario_.run);
  measurement_.memory = schedule::device_memory(planned_.schedule, scenario_);
  if (planned_.overlap) {
    measurement_.overlap = OverlapMeasurement{planned_.overlap->predicted, *shown.exposure};
    put_bound(measurement_);
  }
  measurement_.mean_block = mean_block(planned_.plan);
  measurement_.message = largest_message(planned_.plan);
}

double PipelineMeasurement::difference_percent() const {
  return percent_above(summary.median, Duration{predicted.makespan_ns});
}

double PipelineMeasurement::difference_without_credit_percent() const {
  return percent_above(summarize(without_credit_ns).median, Duration{predicted.makespan_ns});
}

std::optional<Duration> PipelineMeasurement::late_per_message() const {
  return plan::late_per_message(summary.median, Duration{predicted.makespan_ns}, critical_messages);
}

double PipelineMeasurement::straggling_difference_percent() const {
  return percent_above(summary.median, *straggling);
}

}  // namespace longhaul::harness
