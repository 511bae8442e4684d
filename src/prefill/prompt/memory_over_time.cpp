#include "prefill/prompt/memory_over_time.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::prefill {

MemoryOverTime::MemoryOverTime(Duration period, std::vector<std::vector<FreeMemoryStep>> steps)
    : period_{period}, steps_{std::move(steps)}, holds_(steps_.size()) {}

Bytes MemoryOverTime::left_by_training(std::int32_t rank, Duration time) const {
  return std::prev(
             std::ranges::upper_bound(steps_[at(rank)], time % period_, {}, &FreeMemoryStep::at))
      ->bytes;
}

Duration MemoryOverTime::next_step(std::int32_t rank, Duration after) const {
  const auto& steps = steps_[at(rank)];
  const Duration begin = after - after % period_;
  const auto step = std::ranges::upper_bound(steps, after - begin, {}, &FreeMemoryStep::at);
  return step == steps.end() ? begin + period_ : begin + step->at;
}

Bytes MemoryOverTime::free_at(std::int32_t rank, Duration time) const {
  Bytes free = left_by_training(rank, time);
  for (const Hold& hold : holds_[at(rank)])
    if (hold.from <= time && hold.until > time) free = free - hold.bytes;
  return free;
}

Duration MemoryOverTime::next_change(std::int32_t rank, Duration after) const {
  Duration next = next_step(rank, after);
  for (const Hold& hold : holds_[at(rank)])
    for (const Duration time : {hold.from, hold.until})
      if (time > after) next = std::min(next, time);
  return next;
}

std::optional<MemoryShortage> MemoryOverTime::last_shortage(std::int32_t rank, Duration from,
                                                            Duration until, Bytes need) const {
  if (steps_[at(rank)].empty()) return std::nullopt;
  std::optional<MemoryShortage> found;
  bool lasts = false;
  const Duration never = std::max(last_release_, until) + period_;
  for (Duration time = from; time < until || lasts; time = next_change(rank, time)) {
    const Bytes free = free_at(rank, time);
    if (free < need) {
      const Bytes before = found ? found->lacks : Bytes{};
      found = {time < until ? std::max(before, need - free) : before, Duration::max()};
    } else if (lasts) {
      found->until = time;
    }
    lasts = free < need;
    if (lasts && time > never) return found;
  }
  return found;
}

std::optional<Bytes> MemoryOverTime::most_free(std::int32_t rank) const {
  const auto& steps = steps_[at(rank)];
  if (steps.empty()) return std::nullopt;
  return std::ranges::max_element(steps, {}, &FreeMemoryStep::bytes)->bytes;
}

std::optional<Bytes> MemoryOverTime::least_free(std::int32_t rank) const {
  const auto& steps = steps_[at(rank)];
  if (steps.empty()) return std::nullopt;
  return std::ranges::min_element(steps, {}, &FreeMemoryStep::bytes)->bytes;
}

void MemoryOverTime::hold(std::int32_t rank, Duration from, Duration until, Bytes bytes) {
  holds_[at(rank)].push_back({from, until, bytes});
  last_release_ = std::max(last_release_, until);
}

void MemoryOverTime::forget(std::int32_t rank, Duration before) {
  std::erase_if(holds_[at(rank)], [&](const Hold& hold) { return hold.until <= before; });
}

int layers_of_stage(const ServedModel& model, int stage) {
  const int layers = model.dimensions ? model.dimensions->layers : 1;
  return layers / model.stages + (stage == 0 ? layers % model.stages : 0);
}

Bytes prompt_memory(const ServedModel& model, std::int64_t tokens, std::int64_t in_pass,
                    int stage) {
  if (!model.dimensions) return Bytes{};
  const Bytes layer = model.dimensions->kv(tokens) / model.dimensions->layers;
  return layer * layers_of_stage(model, stage) + model.dimensions->transient(in_pass);
}

Bytes held_memory(const ServedModel& model, std::int64_t tokens, int stage) {
  return prompt_memory(model, tokens, model.chunk > 0 ? std::min(model.chunk, tokens) : tokens,
                       stage);
}

}  // namespace longhaul::prefill
