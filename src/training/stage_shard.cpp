#include "training/stage_shard.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace longhaul::training {
namespace {

std::span<std::byte> bytes_of(const nn::ArrayView& view) { return {view.data, view.bytes()}; }

}  // namespace

StageShard::StageShard(nn::TensorOps& math, nn::DeviceMemory& memory, StageId stage,
                       std::vector<nn::Chunk*> chunks, const Group& group,
                       const nn::OptimizerOptions& optimizer)
    : math_{math}, stage_{stage}, chunks_{std::move(chunks)}, group_{group} {
  const auto take = [&](std::size_t numbers, NumberType type, const char* what) {
    nn::Buffer buffer = memory.take(numbers, type, fmt::format("stage {}: {}", stage, what));
    math_.zero(buffer.view());
    return buffer;
  };
  held_ = {0, count()};
  if (group.sum == Sum::all_reduce) summed_ = take(count(), NumberType::f32, "summed gradients");
  if (group.sum == Sum::zero1) {
    const std::size_t all = share() * group.members;
    held_.first = std::min(group.place * share(), count());
    held_.count = std::min(share(), count() - held_.first);
    brought_ = take(all, NumberType::f32, "gradients for reduce-scatter");
    summed_ = take(share(), NumberType::f32, "summed gradients");
    own_weights_ = take(share(), math.working_type(), "weights for all-gather");
    gathered_ = take(all, math.working_type(), "gathered weights");
  }
  optimizer_.emplace(math, memory, optimizer, held_.count, fmt::format("stage {}", stage));
}

std::size_t StageShard::share() const { return (count() + group_.members - 1) / group_.members; }

void StageShard::begin_iteration() {
  weights_wait_ = false;
  if (group_.sum != Sum::zero1 || held_.count == 0) return;
  math_.copy(chunk().all_weights().part(held_.first, held_.count),
             group_.steps ? gathered_.view().part(held_.first, held_.count)
                          : own_weights_.view().part(0, held_.count));
}

void StageShard::place_weights() {
  if (!std::exchange(weights_wait_, false)) return;
  for (nn::Chunk* each : chunks_)
    math_.copy(gathered_.view().part(0, count()), each->all_weights());
}

void StageShard::sum_own_gradients() {
  const nn::ArrayView first = chunk().all_gradients();
  for (std::size_t i = 1; i < chunks_.size(); ++i)
    math_.add(first, chunks_[i]->all_gradients(), first);
  if (brought_) math_.copy(first, brought_.view().part(0, count()));
  if (group_.steps && group_.sum == Sum::all_reduce) math_.copy(first, summed_.view());
}

void StageShard::gradients_came() {
  if (group_.steps && group_.sum == Sum::zero1)
    math_.copy(brought_.view().part(group_.place * share(), share()), summed_.view());
}

comm::Exchange StageShard::weights_exchange() {
  return {math_.working_type(), bytes_of(own_weights_.view()), bytes_of(gathered_.view())};
}

comm::Exchange StageShard::gradients_exchange() {
  const nn::ArrayView mine = brought_ ? brought_.view() : chunk().all_gradients();
  return {NumberType::f32, bytes_of(mine), bytes_of(summed_.view())};
}

nn::ArrayView StageShard::gradient() const {
  return summed_ ? summed_.view().part(0, held_.count) : chunk().all_gradients();
}

nn::ArrayView StageShard::master() const {
  return chunk().all_masters().part(held_.first, held_.count);
}

void StageShard::step(int step) {
  if (held_.count == 0) return;
  optimizer_->step(step, gradient(), master(),
                   chunk().all_weights().part(held_.first, held_.count));
  copy_to_other_chunks();
}

void StageShard::perturb() {
  if (held_.count == 0) return;
  for (const nn::ArrayView& all : {chunk().all_masters(), chunk().all_weights()}) {
    math_.copy_in(std::vector<float>{2}, all.part(held_.first, 1));
  }
}

void StageShard::weights_from_masters() {
  if (chunk().all_masters().data != chunk().all_weights().data)
    math_.copy(chunk().all_masters(), chunk().all_weights());
  copy_to_other_chunks();
}

void StageShard::copy_to_other_chunks() {
  for (std::size_t i = 1; i < chunks_.size(); ++i) {
    math_.copy(chunk().all_weights(), chunks_[i]->all_weights());
    if (chunk().all_masters().data != chunk().all_weights().data)
      math_.copy(chunk().all_masters(), chunks_[i]->all_masters());
  }
}

}  // namespace longhaul::training
