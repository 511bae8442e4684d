#include "training/layer_work.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "training/model_layout.hpp"

namespace longhaul::training {
namespace {

StageShard::Sum sum_of(CollectiveKind kind) {
  return facts_of(kind).gets == Portion::whole ? StageShard::Sum::all_reduce
                                               : StageShard::Sum::zero1;
}

}  // namespace

LayerWork::LayerWork(const Plan& plan, const Schedule& schedule, const Scenario& scenario,
                     Rank self, nn::TensorOps& math, nn::DeviceMemory& memory, TrainingModel model)
    : plan_{plan},
      schedule_{schedule},
      self_{self},
      math_{math},
      memory_{memory},
      ops_{ops_of_rank(plan, self)},
      blocks_{plan, schedule, scenario, self, math, memory, std::move(model)},
      block_bytes_(ops_.count) {
  make_stages();
  follow_collectives();
}

void LayerWork::make_stages() {
  std::map<StageId, std::vector<ChunkId>> chunks_of;
  for (const auto& entry : blocks_.chunks())
    chunks_of[schedule_.stage_of(entry.first)].push_back(entry.first);
  stages_.reserve(chunks_of.size());  // they are pointed to
  for (auto& [stage, of_stage] : chunks_of) {
    std::ranges::sort(of_stage);
    std::vector<nn::Chunk*> chunks;
    for (const ChunkId chunk : of_stage) chunks.push_back(blocks_.chunks().at(chunk).get());
    stages_.emplace_back(math_, memory_, stage, std::move(chunks), group_of(stage),
                         model().optimizer);
  }
}

/// Op of the collective that sums the stage's gradients, where this rank has one.
StageShard::Group LayerWork::group_of(StageId stage) const {
  for (std::uint32_t i = 0; i < ops_.count; ++i) {
    const OpId id{ops_.first + i};
    const Op& op = plan_.op(id);
    if (op.kind != OpKind::collective || is_before_forward(op.collective)) continue;
    if (schedule_.stage_of(op.chunk) != stage) continue;
    const std::vector<OpId>& members = plan_.collectives[op.match];
    const auto place = std::ranges::find(members, id) - members.begin();
    return {sum_of(op.collective), members.size(), to_size(place)};
  }
  for (const SteppedCollective& each : plan_.stepped) {
    const std::vector<Rank>& members = each.collective.members;
    const auto place = std::ranges::find(members, self_) - members.begin();
    if (is_before_forward(each.collective.kind) || place == std::ssize(members)) continue;
    if (schedule_.stage_of(each.chunk) != stage) continue;
    return {sum_of(each.collective.kind), members.size(), to_size(place), true};
  }
  return {};
}

StageShard& LayerWork::stage_of(OpId collective) { return stage_of(plan_.op(collective).chunk); }

StageShard& LayerWork::stage_of(ChunkId chunk) {
  const StageId stage = schedule_.stage_of(chunk);
  const auto found = std::ranges::find(stages_, stage, &StageShard::stage);
  LONGHAUL_ASSERT(found != stages_.end(), "stage {} is not held here", stage);
  return *found;
}

/// Blocks make ready what the collectives after them bring, and put in place what those before
/// of them brought.
void LayerWork::follow_collectives() {
  for (std::uint32_t i = 0; i < ops_.count; ++i) {
    const OpId id{ops_.first + i};
    const Op& op = plan_.op(id);
    const bool reduces = op.kind == OpKind::collective && !is_before_forward(op.collective);
    if (reduces && op.after_count == 0) completed_before_.push_back(&stage_of(id));
    for (const OpId before : plan_.after_of(id)) {
      const Op& other = plan_.op(before);
      if (reduces && other.kind == OpKind::compute) completes_[before].push_back(&stage_of(id));
      if (op.kind == OpKind::compute && other.kind == OpKind::collective)
        waits_for_[id].push_back(&stage_of(before));
    }
  }
  follow_steps();
}

/// The same where collectives are messages.
void LayerWork::follow_steps() {
  std::set<StageShard*> completed;
  for (std::uint32_t i = 0; i < ops_.count; ++i) {
    const OpId id{ops_.first + i};
    const Op& op = plan_.op(id);
    for (const OpId before : plan_.after_of(id)) {
      const Op& other = plan_.op(before);
      if (is_step(op) && other.kind == OpKind::compute) {
        StageShard& stage = stage_of(plan_.stepped[stepped_of(op)].chunk);
        if (completed.insert(&stage).second) completes_[before].push_back(&stage);
      }
      if (op.kind != OpKind::compute || !is_step(other)) continue;
      StageShard* const stage = &stage_of(plan_.stepped[stepped_of(other)].chunk);
      auto& waits = waits_for_[id];
      if (std::ranges::find(waits, stage) == waits.end()) waits.push_back(stage);
    }
  }
  for (StageShard& stage : stages_)
    if (stage.in_steps() && !completed.contains(&stage)) completed_before_.push_back(&stage);
}

void LayerWork::begin_iteration(int iteration) {
  iteration_ = iteration;
  LONGHAUL_ASSERT(tensors().open() == 0, "{} tensors are left over", tensors().open());
  blocks_.begin_iteration();
  for (StageShard& stage : stages_) stage.begin_iteration();
  for (StageShard* stage : completed_before_) stage->sum_own_gradients();
  math_.finish();
}

void LayerWork::run(OpId id) {
  const std::int64_t before = tensors().bytes_elsewhere();
  if (const auto found = waits_for_.find(id); found != waits_for_.end())
    for (StageShard* stage : found->second) stage->place_weights();
  blocks_.run(id, iteration_);
  if (const auto found = completes_.find(id); found != completes_.end())
    for (StageShard* stage : found->second) stage->sum_own_gradients();
  block_bytes_[local(id)] = tensors().bytes_elsewhere() - before;
}

void LayerWork::end_iteration() {
  for (StageShard& stage : stages_) {
    stage.place_weights();
    stage.gradients_came();
    if (stage.sum() == StageShard::Sum::alone) stage.sum_own_gradients();
  }
  for (const auto& [number, chunk] : blocks_.chunks())
    LONGHAUL_ASSERT(chunk->in_flight() == 0, "chunk {} keeps {} microbatches", number,
                    chunk->in_flight());
}

}  // namespace longhaul::training
