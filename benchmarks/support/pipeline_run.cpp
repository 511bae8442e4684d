#include "support/pipeline_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plan/occupancy.hpp"
#include "plan/rows.hpp"
#include "plan/stragglers.hpp"
#include "runtime/rank_ops.hpp"
#include "support/wrong_messages.hpp"

namespace longhaul::bench {
namespace {

/// This rank's stamps on rank 0's clock.
void align(OpTimes& times, OpRange range, Duration offset) {
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
    times[i].ready += offset;
    times[i].start += offset;
    times[i].end += offset;
  }
}

/// Rank 0 gets the times of all ranks' ops, from the first op's start on; the others nothing. A
/// rank's ops lie together and ranks ascend, so the parts make up the whole.
OpTimes gather_times(const Ranks& ranks, const Plan& plan, const OpTimes& mine) {
  const OpRange range = ops_of_rank(plan, ranks.self());
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(
      std::as_bytes(std::span{mine}.subspan(range.first, range.count)), counts);
  if (!ranks.is_first()) return {};
  OpTimes all(bytes.size() / sizeof(OpTime));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  const Duration begin = std::ranges::min_element(all, {}, &OpTime::start)->start;
  align(all, {0, static_cast<std::uint32_t>(all.size())}, -begin);
  return all;
}

Checks sum_of(const mpi::Communicator& world, const Checks& mine) {
  Checks sum;
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
  return sum;
}

using Outcome = IterationOutcome;

/// The iteration whose makespan is nearest to the median.
const Outcome& typical(const std::vector<Outcome>& outcomes, double median) {
  return *std::ranges::min_element(outcomes, {}, [&](const Outcome& outcome) {
    return std::abs(static_cast<double>(outcome.report.makespan_ns) - median);
  });
}

/// On a network as it is no message holds what the plan names: two may be on their way at once.
void leave_resources_out(Timeline& timeline) {
  for (TimelineRow& row : timeline.rows)
    if (row.kind == RowKind::send || row.kind == RowKind::recv) row.resource = -1;
}

Outcome outcome_of(const Plan& plan, const OpTimes& times, int iteration,
                   const Scenario& scenario) {
  Timeline timeline;
  append_rows(timeline, plan, times, iteration);
  Outcome outcome{report_iteration(timeline, 0, iteration, scenario.activation_budget().count()),
                  occupancy(plan, times)};
  std::erase_if(outcome.resources,
                [](const ResourceUse& use) { return use.kind == ResourceKind::device; });
  return outcome;
}

ScheduleRecord record_of(const Outcome& outcome, const Schedule& schedule,
                         const Scenario& scenario) {
  ScheduleRecord record = make_record(outcome.report, schedule, scenario);
  record.resources = outcome.resources;
  return record;
}

double percent_above(double measured_ns, Duration expected) {
  return expected > Duration::zero()
             ? 100.0 * (measured_ns / static_cast<double>(expected.count()) - 1.0)
             : 0.0;
}

/// What slow devices make of the plan; nothing where none is slow.
std::optional<Duration> straggling_makespan(const Plan& plan, const Run& run) {
  if (std::ranges::all_of(run.stragglers, [](double factor) { return factor == 1.0; }))
    return std::nullopt;
  return std::ranges::max(simulate(with_stragglers(plan, run)), {}, &OpTime::end).end;
}

/// By how much a rank may be slower than its prediction: that knows neither noise nor stragglers.
int slowness(const Run& run) {
  double factor = 1.0;
  for (const double straggler : run.stragglers) factor = std::max(factor, straggler);
  return 2 * static_cast<int>(std::ceil(factor));
}

}  // namespace

ScheduleRun::ScheduleRun(Ranks& ranks, const PlannedSchedule& planned, const Scenario& scenario,
                         int position, const EngineOptions& options, const PipelineSinks& sinks)
    : ranks_{ranks},
      planned_{planned},
      scenario_{scenario},
      position_{position},
      sinks_{sinks},
      emulates_{options.emulation == Emulation::on},
      engine_{planned.plan, ranks, device_, options},
      longest_wait_{slowness(options.run) *
                    longest_wait(planned.plan, planned.predicted, ranks.self())} {}

OpTimes ScheduleRun::iterate(int iteration) {
  ranks_.watchdog().watch(&planned_.plan, longest_wait_);
  IterationResult result = engine_.run(iteration);
  ranks_.watchdog().watch(&planned_.plan, {});
  add(result);
  OpTimes all;
  if (iteration >= 0) all = keep(iteration, result.times);
  if (sinks_.iteration_done) sinks_.iteration_done(planned_.plan.schedule);
  return all;
}

void ScheduleRun::add(const IterationResult& result) {
  measurement_.checks += result.checks;
  static constexpr std::size_t kNamed = 8;
  for (const WrongMessage& wrong : result.wrong)
    if (wrong_.size() < kNamed) wrong_.push_back(wrong);
  measurement_.lease += result.lease;
  measurement_.transfers += result.transfers;
  measurement_.transfer_total += result.transfer_total;
  measurement_.transfer_longest = std::max(measurement_.transfer_longest, result.transfer_longest);
}

OpTimes ScheduleRun::keep(int iteration, OpTimes& times) {
  align(times, ops_of_rank(planned_.plan, ranks_.self()), sinks_.clock.offset);
  if (!sinks_.directory.empty()) {
    Timeline rows;
    append_rows(rows, planned_.plan, times, iteration, ranks_.self());
    if (!emulates_) leave_resources_out(rows);
    write_segment(sinks_.directory, {position_, iteration, static_cast<int>(ranks_.self())}, rows);
  }
  OpTimes all = gather_times(ranks_, planned_.plan, times);
  if (!ranks_.is_first()) return all;
  if (outcomes_.empty()) measurement_.first_iteration = iteration;
  outcomes_.push_back(outcome_of(planned_.plan, all, iteration, scenario_));
  return all;
}

PipelineMeasurement ScheduleRun::conclude() {
  const auto& world = ranks_.world();
  // Nobody sends between these two: what is on its way now is nobody's.
  world.barrier();
  measurement_.checks.unclaimed += ranks_.transport().unclaimed();
  world.barrier();
  measurement_.checks = sum_of(world, measurement_.checks);
  measurement_.wrong_messages = gather_wrong_messages(ranks_, planned_.plan, wrong_);
  measurement_.lease = {world.sum(measurement_.lease.leases),
                        Duration{world.sum(measurement_.lease.total.count())},
                        Duration{world.maximum(measurement_.lease.longest.count())}};
  measurement_.transfers = world.sum(measurement_.transfers);
  measurement_.transfer_total = Duration{world.sum(measurement_.transfer_total.count())};
  measurement_.transfer_longest = Duration{world.maximum(measurement_.transfer_longest.count())};
  if (ranks_.is_first()) summarize_outcomes();
  return std::move(measurement_);
}

void ScheduleRun::summarize_outcomes() {
  for (const Outcome& outcome : outcomes_)
    measurement_.makespans_ns.push_back(static_cast<double>(outcome.report.makespan_ns));
  measurement_.summary = summarize(measurement_.makespans_ns);
  measurement_.measured =
      record_of(typical(outcomes_, measurement_.summary.median), planned_.schedule, scenario_);
  measurement_.predicted = record_of(outcome_of(planned_.plan, planned_.predicted, 0, scenario_),
                                     planned_.schedule, scenario_);
  measurement_.straggling = straggling_makespan(planned_.plan, scenario_.run);
  measurement_.memory = device_memory(planned_.schedule, scenario_);
}

double PipelineMeasurement::difference_percent() const {
  return percent_above(summary.median, Duration{predicted.makespan_ns});
}

double PipelineMeasurement::straggling_difference_percent() const {
  return percent_above(summary.median, *straggling);
}

}  // namespace longhaul::bench
