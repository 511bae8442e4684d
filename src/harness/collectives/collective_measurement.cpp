#include "harness/collectives/collective_measurement.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/index.hpp"
#include "engine/engine.hpp"
#include "engine/payloads/collective_data_plane.hpp"
#include "harness/ranks/main.hpp"
#include "host/machine.hpp"
#include "plan/critical_messages.hpp"
#include "plan/rewrite/beside.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {
namespace {

/// When a rank's first message began and its last one was over, by rank 0's clock where hosts are
/// several, by the host's otherwise.
struct RankSpan {
  Duration begin = Duration::max(), end = Duration::min();
};

/// What of a plan is looked at.
enum class Part : std::uint8_t { all, last_collective };

bool is_in(Part part, const Plan& plan, const Op& op) {
  return part == Part::all || (is_step(op) && stepped_of(op) + 1 == plan.stepped.size());
}

RankSpan span_of(const Plan& plan, Part part, Rank rank, const OpTimes& times,
                 Duration clock_offset) {
  RankSpan span;
  const OpRange range = ops_of_rank(plan, rank);
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
    if (!is_in(part, plan, plan.ops[i])) continue;
    span.begin = std::min(span.begin, times[i].start + clock_offset);
    span.end = std::max(span.end, times[i].end + clock_offset);
  }
  return span;
}

Duration predicted_span(const Plan& plan, Part part, const OpTimes& times) {
  RankSpan all;
  for (const Rank rank : ids<Rank>(static_cast<int>(plan.ranks.size()))) {
    const RankSpan each = span_of(plan, part, rank, times, Duration::zero());
    all = {std::min(all.begin, each.begin), std::max(all.end, each.end)};
  }
  return all.end - all.begin;
}

/// Rank 0 gets the time from the first begin to the last end.
double duration_of(const engine::Ranks& ranks, const RankSpan& mine) {
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(std::as_bytes(std::span{&mine, std::size_t{1}}), counts);
  if (!ranks.is_first()) return 0;
  std::vector<RankSpan> spans(bytes.size() / sizeof(RankSpan));
  std::memcpy(spans.data(), bytes.data(), bytes.size());
  const Duration begin = std::ranges::min(spans, {}, &RankSpan::begin).begin;
  const Duration end = std::ranges::max(spans, {}, &RankSpan::end).end;
  return static_cast<double>((end - begin).count());
}

/// Whole messages are sent, memory holds the vectors, and nothing else is sent meanwhile.
bool adds_up(const plan::Collective& collective, const plan::CollectiveSteps& steps,
             const CollectiveSettings& settings) {
  constexpr Bytes kMost{256 << 20};
  const auto fits = [&](const plan::StepMessage& message) {
    return message.size <= settings.engine.payload;
  };
  return settings.device == DeviceKind::cpu && !settings.beside &&
         engine::CollectiveDataPlane::memory_of(collective) <= kMost &&
         std::ranges::all_of(steps.messages, fits);
}

/// 0 where nothing was to take any time: a group of one member.
double percent_from(Duration expected, double measured_ns) {
  const auto expected_ns = static_cast<double>(expected.count());
  return expected_ns > 0 ? (measured_ns / expected_ns - 1) * 100 : 0;
}

}  // namespace

std::optional<OwnCalls> own_calls_of(const CollectiveSettings& settings,
                                     const comm::TransportChoice& transport) {
  if (settings.device == DeviceKind::cpu) return OwnCalls::mpi;
  if (transport.kind == comm::TransportKind::nccl) return OwnCalls::nccl;
  if (settings.calls != CollectiveCalls::native) return std::nullopt;
  throw CollectiveError{
      fmt::format("--collectives native: --transport {} has no collectives of its own ({}). Use "
                  "--transport nccl where each rank has a GPU, or --device cpu for MPI's.",
                  to_string(transport.kind), transport.why)};
}

double CollectiveMeasurement::difference_percent() const {
  return percent_from(predicted.duration, summary.median);
}

std::optional<Duration> CollectiveMeasurement::late_per_message() const {
  if (summary.n == 0) return std::nullopt;
  return plan::late_per_message(summary.median, predicted.duration, predicted.critical_messages);
}

double CollectiveMeasurement::difference_without_credit_percent() const {
  return percent_from(predicted.duration, summarize(without_credit_ns).median);
}

double CollectiveMeasurement::difference_over_ties_percent() const {
  return percent_from(over_ties->median, summary.median);
}

double BesideTimes::difference_percent() const { return percent_from(predicted, summary.median); }

Duration CollectiveMeasurement::processor_time_of_side() const {
  const std::int64_t sides = 2 * checks.messages;
  return sides == 0 ? Duration{} : processor_time / sides;
}

std::int64_t CollectiveMeasurement::wrong() const {
  std::int64_t sum = checks.wrong();
  for (const auto* runs : {&out_of_place, &in_place, &own_out_of_place, &own_in_place})
    if (*runs) sum += (*runs)->wrong;
  return sum;
}

namespace {

/// Messages on the critical path of the last collective, from its first message's start on.
int critical_messages_of(const Plan& plan, const OpTimes& times) {
  Duration begin = Duration::max();
  OpId last = kNone<OpId>;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (!is_in(Part::last_collective, plan, plan.ops[i])) continue;
    begin = std::min(begin, times[i].start);
    if (last == kNone<OpId> || times[i].end > times[index(last)].end) last = OpId{i};
  }
  return plan::messages_on_critical_path(plan, times, last, begin);
}

/// The collective's messages, and the pipeline beside them; predictions of both.
Plan plan_of(const plan::Collective& collective, const Scenario& scenario,
             const CollectiveSettings& settings, CollectiveMeasurement& measured) {
  Plan alone = plan::lower_collective(collective, scenario).or_throw();
  if (!settings.beside) return alone;
  Plan both = plan::beside(settings.beside->plan, alone);
  const OpTimes times = sim::simulate(both);
  measured.beside = BesideTimes{.schedule = settings.beside->schedule,
                                .alone = measured.predicted.duration,
                                .predicted = predicted_span(both, Part::all, times)};
  measured.predicted.duration = predicted_span(both, Part::last_collective, times);
  measured.predicted.critical_messages = critical_messages_of(both, times);
  return both;
}

/// The engine, iteration after iteration.
void play(engine::Engine& engine, const Plan& plan, engine::Ranks& ranks,
          const CollectiveSettings& settings, const engine::CollectiveDataPlane* numbers,
          CollectiveMeasurement& measured) {
  const Duration offset = settings.engine.clock_offset.value_or(Duration::zero());
  for (int iteration = -settings.repetitions.warmup; iteration < settings.repetitions.iterations;
       ++iteration) {
    const Duration before = host::load_now().processor_time;
    const engine::IterationResult result = engine.run(iteration);
    measured.processor_time += host::load_now().processor_time - before;
    measured.checks += result.checks;
    measured.credit += result.credit;
    if (numbers != nullptr) measured.checks.wrong_tensors += numbers->wrong_items();
    const auto duration = [&](Part part) {
      return duration_of(ranks, span_of(plan, part, ranks.self(), result.times, offset));
    };
    const double own = duration(Part::last_collective);
    const double all = measured.beside ? duration(Part::all) : own;
    const std::int64_t lag = ranks.world().maximum(result.end.shadow.count()) -
                             ranks.world().maximum(result.end.seen.count());
    if (iteration < 0 || !ranks.is_first()) continue;
    measured.durations_ns.push_back(own);
    if (measured.beside)
      measured.beside->durations_ns.push_back(all);
    else
      measured.without_credit_ns.push_back(own + static_cast<double>(lag));
  }
}

/// What ranks counted, summed over all of them.
void add_up_ranks(const engine::Ranks& ranks, CollectiveMeasurement& measured) {
  engine::Checks all;
  all.messages = ranks.world().sum(measured.checks.messages);
  all.corrupted = ranks.world().sum(measured.checks.wrong());
  measured.checks = all;
  engine::CreditUse& credit = measured.credit;
  for (std::int64_t* const count : {&credit.ops, &credit.credited})
    *count = ranks.world().sum(*count);
  credit.total = Duration{ranks.world().sum(credit.total.count())};
  credit.largest = Duration{ranks.world().maximum(credit.largest.count())};
  measured.processor_time = Duration{ranks.world().sum(measured.processor_time.count())};
}

/// Links emulated, message by message, by the engine.
void play_emulated(const plan::Collective& collective, const Scenario& scenario,
                   engine::Ranks& ranks, const CollectiveSettings& settings,
                   CollectiveMeasurement& measured) {
  const Plan plan = plan_of(collective, scenario, settings, measured);
  if (ranks.is_first() && settings.ties.draws > 0)
    measured.over_ties = planner::range_over_ties(
        plan,
        [&](const OpTimes& times) { return predicted_span(plan, Part::last_collective, times); },
        settings.ties);
  const SteppedCollective& stepped = plan.stepped.back();
  measured.adds_up = adds_up(collective, *stepped.steps, settings);
  for (const plan::StepMessage& message : stepped.steps->messages)
    measured.largest_message = std::max(measured.largest_message, message.size);
  measured.largest_sent = measured.adds_up
                              ? measured.largest_message
                              : std::min(measured.largest_message, settings.engine.payload);
  const auto device = make_timed_device(settings.device, ranks, settings.engine.credit);
  std::unique_ptr<engine::DataPlane> data_plane;
  const engine::CollectiveDataPlane* numbers = nullptr;
  if (measured.adds_up) {
    auto made =
        std::make_unique<engine::CollectiveDataPlane>(stepped, collective.size, ranks.self());
    numbers = made.get();
    data_plane = std::move(made);
  } else {
    data_plane = make_data_plane(settings.device, ranks, plan, settings.engine);
  }
  ranks.watchdog().watch(
      &plan, measured.beside ? measured.beside->predicted : measured.predicted.duration);
  engine::Engine engine{plan, ranks, *device, *data_plane, settings.engine};
  play(engine, plan, ranks, settings, numbers, measured);
  ranks.watchdog().watch(nullptr, {});
  add_up_ranks(ranks, measured);
}

void play_at_full_speed(const plan::Collective& collective, engine::Ranks& ranks,
                        const CollectiveSettings& settings, CollectiveMeasurement& measured) {
  measured.adds_up = true;
  measured.out_of_place =
      time_steps(collective, ranks, settings.repetitions, BufferUse::out_of_place, settings.calls);
  measured.in_place =
      time_steps(collective, ranks, settings.repetitions, BufferUse::in_place, settings.calls);
  measured.durations_ns = measured.out_of_place->durations_ns;
}

void call_own(const plan::Collective& collective, engine::Ranks& ranks,
              const CollectiveSettings& settings, CollectiveMeasurement& measured) {
  if (!settings.own) return;
  const auto time = [&](BufferUse use) {
    return time_own(collective, ranks, settings.repetitions, use, *settings.own);
  };
  measured.own_by = *settings.own;
  measured.own_out_of_place = time(BufferUse::out_of_place);
  measured.own_in_place = time(BufferUse::in_place);
}

bool is_same_call(const plan::Collective& a, const plan::Collective& b) {
  return a.kind == b.kind && a.size == b.size && a.members == b.members;
}

}  // namespace

CollectiveMeasurement measure_collective(const plan::Collective& asked, const Scenario& scenario,
                                         engine::Ranks& ranks, const CollectiveSettings& settings) {
  plan::Collective collective = asked;
  if (!settings.emulates()) collective.size = size_in_numbers(asked);
  CollectiveMeasurement measured;
  collectively([&] {  // too many messages, or no link
    measured.predicted = planner::play_collective(collective, scenario).or_throw();
  });
  if (settings.emulates())
    play_emulated(collective, scenario, ranks, settings, measured);
  else
    play_at_full_speed(collective, ranks, settings, measured);
  if (!ranks.is_first()) return measured;
  measured.summary = summarize(measured.durations_ns);
  if (measured.beside) measured.beside->summary = summarize(measured.beside->durations_ns);
  return measured;
}

std::vector<CollectiveMeasurement> measure_collectives(
    const std::vector<plan::Collective>& collectives, const Scenario& scenario,
    engine::Ranks& ranks, const CollectiveSettings& settings,
    const std::function<void(const CollectiveMeasurement&)>& after_each) {
  std::vector<CollectiveMeasurement> all;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    const plan::Collective& each = collectives[i];
    const bool is_same = i > 0 && is_same_call(collectives[i - 1], each);
    const bool native = settings.calls == CollectiveCalls::native;
    if (native && is_same) continue;
    CollectiveMeasurement measured;
    if (native) {
      measured.predicted.collective = each;
      measured.predicted.collective.size = size_in_numbers(each);
    } else {
      measured = measure_collective(each, scenario, ranks, settings);
    }
    if (is_same) {
      measured.own_by = all.back().own_by;
      measured.own_out_of_place = all.back().own_out_of_place;
      measured.own_in_place = all.back().own_in_place;
    } else {
      call_own(each, ranks, settings, measured);
    }
    if (native && !measured.own_out_of_place)
      throw CollectiveError{
          "--collectives native: there is no call of MPI here (ranks are threads, or the vectors "
          "are too small or too large). Leave it out."};
    if (native) {
      measured.durations_ns = measured.own_out_of_place->durations_ns;
      measured.summary = measured.own_out_of_place->summary;
    }
    all.push_back(std::move(measured));
    after_each(all.back());
  }
  return all;
}

CollectiveRates rates_of(const plan::Collective& collective, double duration_ns) {
  const auto members = static_cast<double>(collective.members.size());
  const auto bytes = static_cast<double>(collective.size.count());
  CollectiveRates rates;
  if (duration_ns <= 0) return rates;
  rates.algorithm = bytes / duration_ns * 1e9;
  const CollectiveFacts& facts = facts_of(collective.kind);
  const bool all_through_one =
      (facts.brings == Portion::whole_of_first && facts.gets == Portion::whole) ||
      (facts.brings == Portion::whole && facts.gets == Portion::whole_of_first);
  rates.bus = rates.algorithm * (all_through_one ? 1 : facts.rounds * (members - 1) / members);
  return rates;
}

}  // namespace longhaul::harness
