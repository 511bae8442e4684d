#include "training/chunk_blocks.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "training/model_layout.hpp"

namespace longhaul::training {

ChunkBlocks::ChunkBlocks(const Plan& plan, const Schedule& schedule, const Scenario& scenario,
                         Rank self, nn::TensorOps& math, nn::DeviceMemory& memory,
                         TrainingModel model)
    : plan_{plan},
      schedule_{schedule},
      self_{self},
      model_{std::move(model)},
      tensors_{math, memory, model_.shape.boundary()} {
  const std::vector<nn::LayerRange> layers = layers_of_stages(schedule, scenario);
  std::set<int> recomputed;
  std::set<ChunkId> seen;
  const OpRange ops = ops_of_rank(plan, self);
  for (std::uint32_t i = 0; i < ops.count; ++i) {
    const Op& op = plan.ops[ops.first + i];
    if (op.kind != OpKind::compute) continue;
    if (op.block_kind == BlockKind::R) recomputed.insert(op.chunk);
    if (is_backward(op.block_kind) && op.parts > 1 && seen.insert(op.chunk).second &&
        op.part == op.parts - 1)
      mirrored_.insert(op.chunk);
  }
  double tokens = model_.tokens;
  if (tokens == 0)
    tokens = static_cast<double>(model_.shape.tokens()) * scenario.parallel.microbatches *
             scenario.parallel.replicas;
  for (const ChunkId chunk : chunks_on(schedule, plan.ranks[index(self)].device)) {
    auto& made = chunks_[chunk];
    made = std::make_unique<nn::Chunk>(
        math, memory, model_.shape, layers[at(schedule.stage_of(chunk))],
        recomputed.contains(chunk) ? nn::Recompute::on : nn::Recompute::off, model_.seed);
    made->set_loss_scale(static_cast<float>(1 / tokens));
  }
}

void ChunkBlocks::set_batch(int sequences, double tokens) {
  for (const auto& [number, chunk] : chunks_) {
    chunk->set_batch(sequences);
    chunk->set_loss_scale(static_cast<float>(1 / tokens));
  }
}

void ChunkBlocks::begin_iteration() {
  for (const auto& [number, chunk] : chunks_) chunk->begin_iteration();
}

void ChunkBlocks::run(OpId id, int iteration) {
  const Block block = plan_.op(id).block();
  nn::Chunk& chunk = *chunks_.at(block.chunk);
  const nn::BlockPart part = part_of(block);
  nn::Buffer made;
  switch (block.kind) {
    case BlockKind::F: made = forward(id, block, iteration); break;
    case BlockKind::R: chunk.recompute(block.microbatch, part); break;
    case BlockKind::W: chunk.backward_weight(block.microbatch, part); break;
    case BlockKind::B:
    case BlockKind::D: made = backward(id, block); break;
  }
  if (made) tensors_.put(tensor_key(plan_.op(id)), std::move(made));
}

nn::BlockPart ChunkBlocks::part_of(const Block& block) const {
  const bool back = is_backward(block.kind) || block.kind == BlockKind::W;
  return {block.part, block.parts, back && mirrored_.contains(block.chunk)};
}

nn::Buffer ChunkBlocks::forward(OpId id, const Block& block, int iteration) {
  nn::Chunk& chunk = *chunks_.at(block.chunk);
  nn::Buffer input;
  if (block.part == 0) {
    if (chunk.holds_embedding() || chunk.holds_head()) {
      const ReplicaId replica = plan_.ranks[index(self_)].replica;
      const nn::MicrobatchText text = model_.text(iteration, replica, block.microbatch);
      if (chunk.holds_embedding()) chunk.set_tokens(block.microbatch, text.tokens);
      if (chunk.holds_head()) chunk.set_targets(block.microbatch, text.targets);
    }
    if (!schedule_.is_first(block.chunk))
      input = tensors_.take({false, previous(block.chunk), block.microbatch}, id,
                            to_text(block) + ": its input");
  }
  return chunk.forward(block.microbatch, {block.part, block.parts}, std::move(input));
}

nn::Buffer ChunkBlocks::backward(OpId id, const Block& block) {
  nn::Chunk& chunk = *chunks_.at(block.chunk);
  nn::Buffer gradient;
  const nn::BlockPart part = part_of(block);
  if (part.is_first() && !schedule_.is_last(block.chunk))
    gradient = tensors_.take({true, next(block.chunk), block.microbatch}, id,
                             to_text(block) + ": its gradient");
  return block.kind == BlockKind::B
             ? chunk.backward(block.microbatch, part, std::move(gradient))
             : chunk.backward_input(block.microbatch, part, std::move(gradient));
}

double ChunkBlocks::loss() {
  double sum = 0;
  for (const auto& [number, chunk] : chunks_)
    if (chunk->holds_head()) sum += static_cast<double>(chunk->loss());
  return sum;
}

}  // namespace longhaul::training
