// Prompts that a controller places meanwhile: sources say whose each op is as they draw it.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "base/index.hpp"
#include "harness/prefill/served_work.hpp"

namespace longhaul::harness {

void ServedWork::begin_live(const prefill::LivePlan& live) {
  forget_stretch();
  live_ = &live;
  longest_ = 1;
  for (const prefill::Request& each : planned_.requests) longest_ = std::max(longest_, each.tokens);
}

void ServedWork::drawn(const prefill::DrawnPart& part) {
  if (live_ == nullptr) return;
  const std::lock_guard lock{mutex_};
  const auto [known, is_new] = stage_of_.try_emplace({part.request, part.stage}, stages_.size());
  if (is_new)
    stages_.push_back({part.request, part.tokens, live_->pipelines[to_size(part.pipeline)].model,
                       part.stage, 0, part.tokens});
  slots_[{part.pipeline, part.slot, part.stage}] = known->second;
  Job& job = jobs_[part.op];
  job = {Job::What::compute, {known->second}};
  job.part = part.part;
  job.parts = part.parts;
}

void ServedWork::drawn(const prefill::SentSlice& slice) {
  if (live_ == nullptr) return;
  const std::lock_guard lock{mutex_};
  Job& job = jobs_[OpId{slice.op}];
  job = {Job::What::slice, {stage_of_.at({slice.request, slice.stage})}};
  job.first = to_size(slice.first) / 2;  // fp16
  job.count = to_size(slice.first + slice.bytes) / 2 - job.first;
}

/// Of a live stretch: what a slot's stage has computed, or is to.
std::size_t ServedWork::stage_of_slot(const prefill::LiveOp& op, int stage) const {
  return slots_.at({op.pipeline, op.number, stage});
}

/// Numbers of a live stretch, by the stages that it was filled with.
void ServedWork::sort_arrived(const FilledStretch& stretch) {
  const std::lock_guard lock{mutex_};
  ServedNumbers sorted;
  const auto& stages = stretch.filled.stages;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::int64_t request = stretch.decisions[stages[i].placed.decision].request;
    const auto own = stage_of_.find({request, stages[i].placed.stage});
    if (own == stage_of_.end()) continue;
    for (const auto& [from, to] :
         {std::pair{&numbers_.logits, &sorted.logits}, {&numbers_.sent, &sorted.sent}})
      if (const auto found = from->find(own->second); found != from->end())
        (*to)[i] = found->second;
  }
  for (const prefill::FilledMessage& each : stretch.filled.messages) {
    const auto found = arrived_.find(each.recv);
    if (found == arrived_.end() || !each.is_slice) continue;
    auto& all = sorted.received[each.stage];
    const std::size_t first = to_size(each.first) / 2;
    all.resize(std::max(all.size(), first + found->second.size()), std::nanf(""));
    std::ranges::copy(found->second, all.begin() + static_cast<std::ptrdiff_t>(first));
  }
  numbers_ = std::move(sorted);
}

}  // namespace longhaul::harness
