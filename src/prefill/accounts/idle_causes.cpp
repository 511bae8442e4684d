#include "prefill/accounts/idle_causes.hpp"

#include <algorithm>
#include <functional>

#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

/// How many wait from a time on, until the next step.
struct WaitingStep {
  Duration at{};
  std::int64_t waiting = 0;
  std::int64_t for_memory = 0;  ///< of these
};

std::vector<WaitingStep> waiting_steps(const std::vector<Decision>& decisions) {
  std::vector<WaitingStep> steps;
  for (const Decision& decision : decisions) {
    if (decision.refused) continue;
    const std::int64_t memory = decision.waited_for_memory;
    steps.push_back({decision.arrival + decision.network / 2, 1, 0});
    steps.push_back({std::min(decision.wanted, decision.start), 0, memory});
    steps.push_back({decision.start, -1, -memory});
  }
  std::ranges::sort(steps, {}, &WaitingStep::at);
  std::vector<WaitingStep> sums{{Duration::min(), 0, 0}};
  for (const WaitingStep& step : steps) {
    if (step.at != sums.back().at)
      sums.push_back({step.at, sums.back().waiting, sums.back().for_memory});
    sums.back().waiting += step.waiting;
    sums.back().for_memory += step.for_memory;
  }
  return sums;
}

/// What one GPU may be filled with.
struct GpuFilling {
  bool serves = false;
  bool of_several = false;              ///< a stage of a longer pipeline
  Duration guard = Duration::max();     ///< the least of its models
  Duration shortest = Duration::max();  ///< pass of any request
};

std::vector<GpuFilling> gpu_fillings(int gpus, const std::vector<Served>& served,
                                     const std::vector<Decision>& decisions) {
  std::vector<std::int64_t> least_tokens(served.size(), INT64_MAX);
  for (const Decision& decision : decisions)
    if (decision.refused != RefusalReason::profile)
      least_tokens[decision.model] = std::min(least_tokens[decision.model], decision.tokens);
  std::vector<GpuFilling> fillings(to_size(gpus));
  for (std::size_t i = 0; i < served.size(); ++i) {
    const ServedModel& model = served[i].model;
    std::optional<Duration> whole;
    if (least_tokens[i] != INT64_MAX) whole = model.time(model.chunk > 0 ? 1 : least_tokens[i]);
    for (const Pipeline& pipeline : served[i].serving.pipelines)
      for (std::size_t stage = 0; stage < pipeline.ranks.size(); ++stage) {
        GpuFilling& own = fillings[at(pipeline.ranks[stage])];
        own.serves = true;
        own.of_several = own.of_several || model.stages > 1;
        own.guard = std::min(own.guard, model.guard);
        if (whole)
          own.shortest = std::min(own.shortest, model.stage_time(*whole, static_cast<int>(stage)));
      }
  }
  return fillings;
}

/// Sorts the idle times of one stretch.
class IdleSorter {
public:
  IdleSorter(const std::vector<Decision>& decisions, bool backlog)
      : steps_{waiting_steps(decisions)}, backlog_{backlog} {}

  /// Of the GPU of what is added next.
  void know(const std::vector<KnownIdle>& spans) { known_ = &spans; }

  void add(IdleCause cause, Duration from, Duration until) {
    if (until <= from) return;
    Duration rest = until - from;
    auto span = std::ranges::upper_bound(*known_, from, {}, &KnownIdle::end);
    for (; span != known_->end() && span->start < until; ++span) {
      const Duration known = std::min(span->end, until) - std::max(span->start, from);
      times_[static_cast<std::size_t>(span->cause)] += known;
      rest -= known;
    }
    times_[static_cast<std::size_t>(cause)] += rest;
  }
  /// A time that could be filled, by length.
  void add_gap(const GpuFilling& gpu, Duration from, Duration until) {
    if (until <= from) return;
    if (gpu.shortest == Duration::max()) return add(IdleCause::no_request, from, until);
    if (until - from < gpu.shortest) return add(IdleCause::too_small, from, until);
    auto step = std::prev(std::ranges::upper_bound(steps_, from, {}, &WaitingStep::at));
    while (from < until) {
      const auto next = std::next(step);
      const Duration end = next == steps_.end() ? until : std::min(until, next->at);
      const bool some_wait = backlog_ || step->waiting > 0;
      add(some_wait ? blocked(gpu, step->for_memory) : IdleCause::no_request, from, end);
      from = end;
      step = next;
    }
  }
  [[nodiscard]] const IdleTimes& times() const { return times_; }

private:
  [[nodiscard]] static IdleCause blocked(const GpuFilling& gpu, std::int64_t for_memory) {
    if (for_memory > 0) return IdleCause::memory;
    return gpu.of_several ? IdleCause::skew : IdleCause::too_small;
  }

  std::vector<WaitingStep> steps_;
  const std::vector<KnownIdle>* known_ = nullptr;
  bool backlog_;
  IdleTimes times_{};
};

/// One bubble, cut to [from, until).
void sort_bubble(const GpuFilling& gpu, Duration from, Duration until, Duration bubble_end,
                 const std::vector<PrefillSpan>& spans, IdleSorter& sorter) {
  if (!gpu.serves) return sorter.add(IdleCause::no_pipeline, from, until);
  const Duration guarded = std::max(from, std::min(until, bubble_end - gpu.guard));
  Duration free = from;
  auto span = std::ranges::upper_bound(spans, from, {}, &PrefillSpan::end);
  const auto idle = [&](Duration begin, Duration end) {
    sorter.add_gap(gpu, begin, std::min(end, guarded));
    sorter.add(IdleCause::guard, std::max(begin, guarded), end);
  };
  for (; span != spans.end() && span->start < until; ++span) {
    idle(free, std::max(free, span->start));
    free = std::max(free, span->end);
  }
  idle(free, std::max(free, until));
}

}  // namespace

void join_spans(std::vector<PrefillSpan>& spans) {
  std::ranges::sort(spans, {}, &PrefillSpan::start);
  std::size_t kept = 0;
  for (const PrefillSpan& span : spans) {
    if (kept > 0 && span.start <= spans[kept - 1].end)
      spans[kept - 1].end = std::max(spans[kept - 1].end, span.end);
    else
      spans[kept++] = span;
  }
  spans.resize(kept);
}

std::vector<std::vector<PrefillSpan>> prefill_spans(int gpus, const std::vector<Served>& served,
                                                    const std::vector<Decision>& decisions) {
  std::vector<std::vector<PrefillSpan>> spans(to_size(gpus));
  std::vector<std::vector<const Pipeline*>> pipelines(served.size());
  for (std::size_t i = 0; i < served.size(); ++i)
    for (const Pipeline& pipeline : served[i].serving.pipelines) {
      if (pipelines[i].size() <= at(pipeline.number)) pipelines[i].resize(at(pipeline.number) + 1);
      pipelines[i][at(pipeline.number)] = &pipeline;
    }
  const auto add = [&](const Decision& decision, Duration start, Duration time) {
    const ServedModel& model = served[decision.model].model;
    const Pipeline& pipeline = *pipelines[decision.model][at(decision.pipeline)];
    for (int stage = 0; stage < model.stages; ++stage) {
      const Duration begin = start + stage_offset(model, time, stage);
      spans[at(pipeline.ranks[to_size(stage)])].push_back(
          {begin, begin + model.stage_time(time, stage)});
    }
  };
  for (const Decision& decision : decisions) {
    if (decision.refused) continue;
    if (decision.passes.empty()) add(decision, decision.start, decision.compute);
    for (const PlacedPass& pass : decision.passes) add(decision, pass.start, pass.time);
  }
  for (auto& own : spans) join_spans(own);
  return spans;
}

IdleTimes idle_by_cause(const IdleInput& input) {
  const IterationBubbles& iteration = input.iteration;
  const auto fillings = gpu_fillings(iteration.gpus, input.served, input.decisions);
  const Duration end = iteration.period * input.iterations;
  IdleSorter sorter{input.decisions, input.backlog};
  static const std::vector<KnownIdle> none;
  for (const Bubble& bubble : iteration.bubbles)
    for (std::int64_t i = input.backlog ? 0 : -1; i < input.iterations; ++i) {
      const Duration begin = iteration.period * i;
      const Duration from = std::max(Duration{}, begin + bubble.start);
      const Duration bubble_end = begin + bubble.end;
      const Duration until = input.backlog ? bubble_end : std::min(end, bubble_end);
      if (until <= from) continue;
      const std::size_t rank = at(bubble.rank);
      sorter.know(input.known.empty() ? none : input.known[rank]);
      sort_bubble(fillings[rank], from, until, bubble_end, input.prefills[rank], sorter);
    }
  return sorter.times();
}

IdleTimes idle_by_cause(const IterationBubbles& iteration, const std::vector<Served>& served,
                        const std::vector<Decision>& decisions, std::int64_t iterations,
                        bool backlog) {
  return idle_by_cause({iteration, served, decisions, iterations, backlog,
                        prefill_spans(iteration.gpus, served, decisions)});
}

}  // namespace longhaul::prefill
