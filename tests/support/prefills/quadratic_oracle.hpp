#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "prefill/outcome.hpp"
#include "support/prefills/heterogeneous.hpp"

namespace longhaul::testing {

/// The earliest start of a whole prompt over all pipelines, ties to the lowest, by trying: a start
/// is the arrival, or the time at which some stage's GPU gets idle, or memory is released on one.
/// Each is held against all blocks, all prompts that were placed and all memory that is held.
class QuadraticOracle {
public:
  explicit QuadraticOracle(const Heterogeneous& instance)
      : instance_{instance},
        period_{instance.bubbles.period},
        limits_{prefill::limits_memory(instance.scenario)},
        busy_(to_size(instance.bubbles.gpus)),
        taken_(busy_.size()),
        held_(busy_.size()),
        free_(busy_.size()) {
    for (std::size_t i = 0; i < instance.plan.ops.size(); ++i) {
      const std::size_t gpu = index(instance.plan.rank_of(OpId{static_cast<std::uint32_t>(i)}));
      const OpTime& time = instance.times[i];
      if (instance.plan.ops[i].kind == OpKind::compute && gpu < busy_.size() &&
          time.end > time.start)
        busy_[gpu].push_back({time.start, time.end, Bytes{}});
    }
    if (limits_)
      free_ = prefill::free_memory_steps(instance.schedule, instance.scenario, instance.plan,
                                         instance.times, instance.served);
  }

  /// Pipeline and start; {-1, 0}: refused.
  std::pair<std::int32_t, Duration> place(const prefill::Request& request) {
    const std::size_t model = prefill::served_index(request, instance_.served);
    const prefill::Served& by = instance_.served[model];
    const Duration whole = *by.model.time(request.tokens);
    const prefill::Pipeline* best = nullptr;
    Duration first{};
    for (const prefill::Pipeline& pipeline : by.serving.pipelines)
      for (const Duration start : starts(by.model, pipeline, whole, request.arrival)) {
        if (best != nullptr && start >= first) break;
        if (!fits(by.model, pipeline, whole, request.tokens, start)) continue;
        best = &pipeline;
        first = start;
        break;
      }
    if (best == nullptr) return {-1, {}};
    const Duration end = first + span(by.model, whole);
    if (by.model.slo_ttft && end - request.arrival > *by.model.slo_ttft) return {-1, {}};
    for (int stage = 0; stage < by.model.stages; ++stage) {
      const std::size_t gpu = at(best->ranks[to_size(stage)]);
      const Duration from = first + prefill::stage_offset(by.model, whole, stage);
      taken_[gpu].push_back({from, from + by.model.stage_time(whole, stage), Bytes{}});
      held_[gpu].push_back(
          {first, end, prefill::prompt_memory(by.model, request.tokens, request.tokens, stage)});
    }
    last_ = std::max(last_, end);
    return {best->number, first};
  }

private:
  struct Span {
    Duration start{}, end{};
    Bytes bytes;
  };

  static Duration span(const ServedModel& model, Duration whole) {
    return prefill::stage_offset(model, whole, model.stages - 1) +
           model.stage_time(whole, model.stages - 1);
  }

  std::vector<Duration> starts(const ServedModel& model, const prefill::Pipeline& pipeline,
                               Duration whole, Duration arrival) const {
    std::vector<Duration> all{arrival};
    const Duration last = std::max(arrival, last_) + 3 * period_;
    const auto add = [&](Duration start) {
      if (start > arrival && start <= last) all.push_back(start);
    };
    for (int stage = 0; stage < model.stages; ++stage) {
      const std::size_t gpu = at(pipeline.ranks[to_size(stage)]);
      const Duration offset = prefill::stage_offset(model, whole, stage);
      for (const Span& taken : taken_[gpu]) add(taken.end - offset);
      for (const Span& held : held_[gpu]) add(held.end);
      for (std::int64_t k = std::max<std::int64_t>(0, arrival / period_ - 1); k * period_ <= last;
           ++k) {
        for (const Span& block : busy_[gpu]) add(k * period_ + block.end - offset);
        for (const prefill::FreeMemoryStep& step : free_[gpu]) add(k * period_ + step.at);
      }
    }
    std::ranges::sort(all);
    return all;
  }

  bool fits(const ServedModel& model, const prefill::Pipeline& pipeline, Duration whole,
            std::int64_t tokens, Duration start) const {
    for (int stage = 0; stage < model.stages; ++stage) {
      const std::size_t gpu = at(pipeline.ranks[to_size(stage)]);
      const Duration from = start + prefill::stage_offset(model, whole, stage);
      const Duration end = from + model.stage_time(whole, stage);
      for (const Span& taken : taken_[gpu])
        if (taken.start < end && taken.end > from) return false;
      if (meets_block(gpu, from, end + model.guard)) return false;
      const Bytes need = prefill::prompt_memory(model, tokens, tokens, stage);
      if (limits_ && lacks_memory(gpu, start, start + span(model, whole), need)) return false;
    }
    return true;
  }

  bool meets_block(std::size_t gpu, Duration from, Duration end) const {
    for (std::int64_t k = std::max<std::int64_t>(0, from / period_ - 1); k * period_ < end; ++k)
      for (const Span& block : busy_[gpu])
        if (k * period_ + block.start < end && k * period_ + block.end > from) return true;
    return false;
  }

  Bytes free_at(std::size_t gpu, Duration time) const {
    Bytes free;
    for (const prefill::FreeMemoryStep& step : free_[gpu])
      if (step.at <= time % period_) free = step.bytes;
    for (const Span& held : held_[gpu])
      if (held.start <= time && held.end > time) free = free - held.bytes;
    return free;
  }

  bool lacks_memory(std::size_t gpu, Duration from, Duration end, Bytes need) const {
    if (free_at(gpu, from) < need) return true;
    for (const Span& held : held_[gpu])
      if (held.start > from && held.start < end && free_at(gpu, held.start) < need) return true;
    for (std::int64_t k = from / period_; k * period_ < end; ++k)
      for (const prefill::FreeMemoryStep& step : free_[gpu])
        if (const Duration time = k * period_ + step.at;
            time > from && time < end && free_at(gpu, time) < need)
          return true;
    return false;
  }

  const Heterogeneous& instance_;
  Duration period_, last_{};
  bool limits_;
  std::vector<std::vector<Span>> busy_, taken_, held_;
  std::vector<std::vector<prefill::FreeMemoryStep>> free_;
};

}  // namespace longhaul::testing
