#include "planner/solver/solver_model.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/index.hpp"

namespace longhaul::planner {
namespace {

using Json = nlohmann::json;

template <typename Visit>
void for_ops(const Plan& plan, OpKind kind, Visit visit) {
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].kind == kind) visit(OpId{static_cast<std::uint32_t>(i)}, plan.ops[i]);
  }
}

struct MessageTime {
  Duration transfer{}, sum{}, latency{};
  std::vector<ResourceId> resources;  ///< of replica 0
  bool shared = false;                ///< with another replica
};

/// The times of messages, by the number of their producer.
std::map<int, MessageTime> message_times(const ModelBlocks& blocks, const Plan& plan, bool& exact) {
  std::map<int, MessageTime> times;
  for_ops(plan, OpKind::send, [&](OpId id, const Op& op) {
    const BlockKind kind = op.block_kind == BlockKind::B ? BlockKind::D : op.block_kind;
    MessageTime& message = times[blocks.index_of({kind, 0, 1, op.chunk, op.microbatch})];
    const Duration latency = plan.ops[op.match].duration;
    const auto resources = plan.resources_of(id);
    if (plan.ranks[index(plan.rank_of(id))].replica == ReplicaId{0}) {
      message = {op.duration, op.duration, latency, {resources.begin(), resources.end()}, false};
      return;
    }
    exact &= op.duration == message.transfer && latency == message.latency;
    message.transfer = std::max(message.transfer, op.duration);
    message.latency = std::max(message.latency, latency);
    message.sum += op.duration;
    for (const ResourceId resource : resources)
      message.shared |= std::ranges::find(message.resources, resource) != message.resources.end();
  });
  return times;
}

}  // namespace

void ModelBlocks::add(const Block& block) {
  index_of_[block] = static_cast<int>(blocks_.size());
  blocks_.push_back(block);
}

int ModelBlocks::index_of(const Block& block) const {
  const auto found = index_of_.find(block);
  return found == index_of_.end() ? -1 : found->second;
}

/// The block that takes a gradient: the R that waits for it, or the D.
int ModelBlocks::taker_of_gradient(ChunkId chunk, MicrobatchId microbatch) const {
  const int recompute = index_of({BlockKind::R, 0, 1, chunk, microbatch});
  const bool waits = layout_.recompute_timing == RecomputeTiming::on_arrival;
  return recompute >= 0 && waits ? recompute : index_of({BlockKind::D, 0, 1, chunk, microbatch});
}

ModelBlocks::Taker ModelBlocks::taker(const Block& block) const {
  const auto device = [&](ChunkId chunk) { return layout_.device_of_chunk[chunk]; };
  if (block.kind == BlockKind::F && !layout_.is_last(block.chunk))
    return {index_of({BlockKind::F, 0, 1, next(block.chunk), block.microbatch}),
            device(block.chunk) != device(next(block.chunk))};
  if (block.kind == BlockKind::D && !layout_.is_first(block.chunk))
    return {taker_of_gradient(previous(block.chunk), block.microbatch),
            device(block.chunk) != device(previous(block.chunk))};
  return {};
}

nlohmann::json dependencies_of(const ModelBlocks& blocks) {
  nlohmann::json after = nlohmann::json::array();
  for (std::size_t i = 0; i < blocks.all().size(); ++i) {
    const Block& block = blocks.all()[i];
    const auto needs = [&](BlockKind kind) {
      const int before = blocks.index_of({kind, 0, 1, block.chunk, block.microbatch});
      if (before >= 0) after.push_back({before, i});
    };
    if (block.kind == BlockKind::R || block.kind == BlockKind::D) needs(BlockKind::F);
    if (block.kind == BlockKind::D) needs(BlockKind::R);
    if (block.kind == BlockKind::W) needs(BlockKind::D);
    const ModelBlocks::Taker to = blocks.taker(block);
    if (to.block >= 0 && !to.remote) after.push_back({i, to.block});
  }
  return after;
}

ModelMessages messages_of(const ModelBlocks& blocks, const Plan& plan) {
  ModelMessages messages{Json::array()};
  for (const auto& [producer, message] : message_times(blocks, plan, messages.exact)) {
    Json names = Json::array();
    for (const ResourceId resource : message.resources)
      names.push_back(plan.resources[index(resource)].name);
    const Duration transfer = message.shared ? message.sum : message.transfer;
    messages.exact &= !message.shared || transfer == Duration::zero();
    messages.json.push_back({{"from", producer},
                             {"to", blocks.taker(blocks.all()[at(producer)]).block},
                             {"transfer_ns", transfer.count()},
                             {"latency_ns", message.latency.count()},
                             {"resources", names}});
  }
  return messages;
}

Json collectives_of(const ModelBlocks& blocks, const Plan& plan) {
  const Schedule& layout = blocks.layout();
  Json collectives = Json::array();
  std::set<std::uint32_t> seen;
  for_ops(plan, OpKind::collective, [&](OpId, const Op& op) {
    if (!seen.insert(op.match).second) return;
    std::set<int> devices;
    for (const OpId member : plan.collectives[op.match])
      devices.insert(number(plan.ranks[index(plan.rank_of(member))].device));
    const bool gather = is_before_forward(op.collective);
    Json concerned = Json::array();
    for (std::size_t i = 0; i < blocks.all().size(); ++i) {
      const Block& block = blocks.all()[i];
      if (block.kind == (gather ? BlockKind::F : BlockKind::W) &&
          layout.stage_of(block.chunk) == layout.stage_of(op.chunk))
        concerned.push_back(i);
    }
    collectives.push_back({{"gather", gather},
                           {"devices", devices},
                           {"duration_ns", op.duration.count()},
                           {"blocks", concerned}});
  });
  return collectives;
}

Json held_of(const ModelBlocks& blocks, const schedule::ActivationModel& memory) {
  Json held = Json::array();
  const auto hold = [&](int from, int until, Bytes bytes) {
    if (bytes > Bytes{})
      held.push_back({{"from", from}, {"until", until}, {"bytes", bytes.count()}});
  };
  for (const Block& block : blocks.all()) {
    if (block.kind != BlockKind::D) continue;
    const auto block_of = [&](BlockKind kind) {
      return Block{kind, 0, 1, block.chunk, block.microbatch};
    };
    const auto of = [&](BlockKind kind) { return blocks.index_of(block_of(kind)); };
    const Bytes by_gradient = -memory.effect(block).at_end;
    const Bytes taken = memory.effect(block_of(BlockKind::F)).at_start;
    const Bytes with_gradient = std::min(taken, by_gradient);
    hold(of(BlockKind::F), of(BlockKind::D), with_gradient);
    hold(of(BlockKind::F), of(BlockKind::W), taken - with_gradient);
    if (of(BlockKind::R) < 0) continue;
    const Bytes again = memory.effect(block_of(BlockKind::R)).at_start;
    hold(of(BlockKind::R), of(BlockKind::D), by_gradient - with_gradient);
    hold(of(BlockKind::R), of(BlockKind::W), again - (by_gradient - with_gradient));
  }
  return held;
}

Json memory_limits_of(const Schedule& layout, const Scenario& scenario) {
  const Bytes allowed = schedule::allowed_activation(layout, scenario);
  Json limits = Json::array();
  for (const schedule::DeviceNeed& memory : schedule::device_memory(layout, scenario)) {
    const Bytes others = memory.total() - memory.activations;
    const Bytes left = memory.capacity ? *memory.capacity - others : allowed;
    limits.push_back(std::min(allowed, left).count());
  }
  return limits;
}

}  // namespace longhaul::planner
