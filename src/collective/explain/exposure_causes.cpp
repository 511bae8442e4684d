#include "collective/explain/exposure_causes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "collective/partition/workload_chain.hpp"

namespace longhaul::collective {
namespace {

/// Until when something held it up.
struct Gate {
  Duration until{};
  ExposureCause cause = ExposureCause::length;
};

Duration& of_cause(TimeByCause& times, ExposureCause cause) {
  return times[static_cast<std::size_t>(cause)];
}

class RankExplainer {
public:
  RankExplainer(const IterationPlan& plan, const LoweredIteration& lowered, const OpTimes& times,
                Rank rank)
      : plan_{plan},
        lowered_{lowered},
        times_{times},
        rank_{rank},
        work_{plan.stages[plan.base->ranks[index(rank)].device]},
        positions_{work_.positions()} {
    for (std::uint32_t place = 0; place < work_.order.size(); ++place)
      computed_.push_back(span_of(lowered.op_of(rank, place)));
    const OpRange own = ops_of_rank(lowered.plan, rank);
    for (std::uint32_t i = own.first; i < own.first + own.count; ++i)
      if (is_step(lowered.plan.ops[i])) ops_[stepped_of(lowered.plan.ops[i])].push_back(OpId{i});
  }

  [[nodiscard]] std::vector<ExplainedCommunication> run() {
    std::vector<ExplainedCommunication> all;
    for (auto& [stepped, ops] : ops_) {
      std::ranges::stable_sort(ops, {}, [&](OpId id) { return times_[index(id)].start; });
      all.push_back(explain(stepped, ops));
    }
    std::ranges::stable_sort(all, {}, [](const auto& each) { return each.span.start; });
    return all;
  }

private:
  [[nodiscard]] Span span_of(OpId id) const {
    return {times_[index(id)].start, times_[index(id)].end};
  }
  [[nodiscard]] Duration end_of(OperationId id) const { return computed_[positions_[id]].end; }

  [[nodiscard]] ExplainedCommunication explain(std::size_t stepped,
                                               const std::vector<OpId>& ops) const {
    ExplainedCommunication made;
    made.of = lowered_.communication_of[stepped];
    made.span = span_of(ops.front());
    for (const OpId id : ops) made.span.end = std::max(made.span.end, span_of(id).end);
    const std::vector<Span> idle = take_hidden(made);
    Duration rest{};
    for (const Span& each : idle) rest += each.end - each.start;
    rest -= take_waits(ops, idle, made.exposed);
    spread(gates_of(stepped, ops, made.span.start), rest, made.exposed);
    return made;
  }

  /// Fills what is hidden; what of the span is not.
  [[nodiscard]] std::vector<Span> take_hidden(ExplainedCommunication& made) const {
    std::vector<Span> idle;
    Duration from = made.span.start;
    auto place = std::ranges::upper_bound(computed_, from, {}, &Span::end) - computed_.begin();
    for (; place < std::ssize(computed_); ++place) {
      const Span& own = computed_[to_size(place)];
      if (own.start >= made.span.end) break;
      const Span both{std::max(own.start, from), std::min(own.end, made.span.end)};
      if (both.start >= both.end) continue;
      if (both.start > from) idle.push_back({from, both.start});
      add_beside(work_.operations[work_.order[to_size(place)]], both.end - both.start, made);
      from = both.end;
    }
    if (from < made.span.end) idle.push_back({from, made.span.end});
    return idle;
  }

  void add_beside(const Operation& operation, Duration time, ExplainedCommunication& made) const {
    const Operator* const of = operator_of(plan_, operation);
    const std::string name = of == nullptr ? "optimizer" : of->name;
    const auto known = std::ranges::find_if(made.beside, [&](const HiddenBeside& each) {
      return each.name == name && each.work == operation.work;
    });
    if (known == made.beside.end())
      made.beside.push_back({name, operation.work, time});
    else
      known->time += time;
  }

  /// What of the idle time no message is on its way: the next one waited.
  Duration take_waits(const std::vector<OpId>& ops, const std::vector<Span>& idle,
                      TimeByCause& exposed) const {
    Duration sum{};
    Duration until = span_of(ops.front()).start;
    for (const OpId id : ops) {
      const Span own = span_of(id);
      for (const Span& each : idle) {
        const Duration wait = std::min(each.end, own.start) - std::max(each.start, until);
        if (wait <= Duration{}) continue;
        of_cause(exposed, waited_for(id)) += wait;
        sum += wait;
      }
      until = std::max(until, own.end);
    }
    return sum;
  }

  [[nodiscard]] ExposureCause waited_for(OpId id) const {
    const Op& op = lowered_.plan.ops[index(id)];
    const OpId send = op.kind == OpKind::recv ? OpId{op.match} : id;
    return times_[index(send)].bound_kind == BoundKind::resource ? ExposureCause::resource
                                                                 : ExposureCause::late_rank;
  }

  [[nodiscard]] std::vector<Gate> gates_of(std::size_t stepped, const std::vector<OpId>& ops,
                                           Duration begin) const {
    const Communication& own =
        work_.communications[lowered_.communication_of[stepped].communication];
    std::vector<Gate> gates;
    for (const OperationId id : own.needs) gates.push_back({end_of(id), ExposureCause::late_data});
    for (const OperationId id : own.after) gates.push_back({end_of(id), ExposureCause::lane_order});
    if (own.at_start_of != kNone<OperationId>) add_prefetch(own, gates);
    for (const OpId id : ops)
      for (const OpId before : lowered_.plan.after_of(id))
        add_gate(stepped, own, before, begin, gates);
    std::erase_if(gates, [&](const Gate& each) { return each.until > begin; });
    // Of those at one time what the data says comes last, and so answers for what is before.
    std::ranges::stable_sort(gates, std::ranges::greater{}, [](const Gate& each) {
      return std::pair{each.until, each.cause};
    });
    if (gates.empty() || gates.front().until < begin)
      gates.insert(gates.begin(), {begin, waited_for(ops.front())});
    return gates;
  }

  [[nodiscard]] ExposureCause depth() const {
    return plan_.scenario->parallel.sharding.prefetch ? ExposureCause::prefetch_depth
                                                      : ExposureCause::memory;
  }

  void add_prefetch(const Communication& own, std::vector<Gate>& gates) const {
    const std::uint32_t place = positions_[own.at_start_of];
    if (place > 0) gates.push_back({computed_[place - 1].end, depth()});
  }

  /// An op that one of its messages waited for: of another collective, or a message of the
  /// pipeline.
  void add_gate(std::size_t stepped, const Communication& own, OpId before, Duration begin,
                std::vector<Gate>& gates) const {
    const Op& op = lowered_.plan.ops[index(before)];
    if (op.kind == OpKind::compute || span_of(before).end > begin) return;
    if (!is_step(op)) {
      gates.push_back({span_of(before).end, own.input >= 0 ? ExposureCause::late_data : depth()});
      return;
    }
    if (stepped_of(op) == stepped) return;
    const CommunicationId other = lowered_.communication_of[stepped_of(op)].communication;
    ExposureCause cause = depth();
    if (std::ranges::find(own.follows, other) != own.follows.end())
      cause = ExposureCause::late_data;
    else if (work_.communications[other].queue == own.queue)
      cause = ExposureCause::lane_order;
    gates.push_back({span_of(before).end, cause});
  }

  /// Each gate, the latest first, answers for what lies between it and the next.
  static void spread(const std::vector<Gate>& gates, Duration rest, TimeByCause& exposed) {
    for (std::size_t i = 0; i < gates.size() && rest > Duration{}; ++i) {
      const Duration next = i + 1 < gates.size() ? gates[i + 1].until : Duration{};
      const Duration own = std::min(rest, gates[i].until - next);
      of_cause(exposed, gates[i].cause) += own;
      rest -= own;
    }
    of_cause(exposed, ExposureCause::length) += rest;
  }

  const IterationPlan& plan_;
  const LoweredIteration& lowered_;
  const OpTimes& times_;
  Rank rank_;
  const StageWork& work_;
  IndexedVector<OperationId, std::uint32_t> positions_;
  std::vector<Span> computed_;                    ///< by place in the order
  std::map<std::size_t, std::vector<OpId>> ops_;  ///< by collective
};

}  // namespace

Duration ExplainedCommunication::hidden() const {
  return std::accumulate(beside.begin(), beside.end(), Duration{},
                         [](Duration sum, const HiddenBeside& each) { return sum + each.time; });
}

Duration ExplainedCommunication::total_exposed() const {
  return std::accumulate(exposed.begin(), exposed.end(), Duration{});
}

std::vector<ExplainedCommunication> explained(const IterationPlan& plan,
                                              const LoweredIteration& lowered, const OpTimes& times,
                                              Rank rank) {
  return RankExplainer{plan, lowered, times, rank}.run();
}

}  // namespace longhaul::collective
