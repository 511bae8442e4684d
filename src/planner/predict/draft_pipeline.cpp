#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/index.hpp"
#include "planner/predict/row_draft.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::planner {
namespace {

using profile::RowSchedule;
using profile::TrainingRow;
using Handle = RowDraft::Handle;

Schedule schedule_of(const TrainingRow& row) {
  Scenario scenario = uniform_scenario(row.pipeline, row.microbatches());
  scenario.parallel.chunks = row.chunks;
  if (row.schedule == RowSchedule::accumulate) return schedule::generate("1f1b", scenario);
  return schedule::generate(to_string(row.schedule), scenario);
}

/// The decoder layers of chunk `chunk`: the first ones hold those that do not divide.
int layers_of_chunk(const TrainingRow& row, int chunk) {
  const int chunks = row.pipeline * row.chunks;
  return row.layers / chunks + (chunk < row.layers % chunks ? 1 : 0);
}

/// Drafts the pipeline of one replica.
class PipelineDraft {
public:
  explicit PipelineDraft(const TrainingRow& row)
      : row_{row},
        schedule_{schedule_of(row)},
        blocks_(to_size(2 * schedule_.chunks) * to_size(schedule_.microbatches)) {}

  RowDraft make() {
    add_ranks();
    add_blocks();
    latency_ = made_.add_slot({.kind = SlotKind::latency});
    for (const DeviceId device : schedule_.device_ids()) add_messages(device);
    add_steps();
    return std::move(made_);
  }

private:
  struct Route {
    LaneId sends{}, receives{};
    std::uint32_t slot = 0;
  };

  void add_ranks() {
    for (const DeviceId device : schedule_.device_ids()) {
      const Rank rank = made_.draft.add_rank("machine", number(device));
      ranks_.push_back(rank);
      compute_.push_back(made_.draft.add_lane(
          rank, "compute", OpKind::compute,
          {made_.draft.add_resource(fmt::format("device {}", device), ResourceKind::device)}));
      collective_.push_back(made_.draft.add_lane(rank, "collective", OpKind::collective));
    }
  }

  void add_blocks() {
    std::vector<std::uint32_t> forward, backward;
    for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
      Slot slot{.layers = double(layers_of_chunk(row_, chunk)),
                .embedding = chunk == 0,
                .head = chunk + 1 == schedule_.chunks};
      slot.overheads = 0.5 / row_.chunks;
      forward.push_back(made_.add_slot(slot));
      slot.kind = SlotKind::backward;
      backward.push_back(made_.add_slot(slot));
    }
    for (const DeviceId device : schedule_.device_ids())
      for (const Block& block : schedule_.row(ReplicaId{0}, device)) {
        const auto& slots = block.kind == BlockKind::F ? forward : backward;
        at_block(block) = made_.add_block(compute_[index(device)], slots[at(block.chunk)], block);
      }
  }

  /// Those that leave a device, in the order in which they are produced.
  void add_messages(DeviceId device) {
    for (const Block& block : schedule_.row(ReplicaId{0}, device)) {
      const ChunkId taker = taker_of(schedule_, block);
      if (taker == kNone<ChunkId>) continue;
      Block taken = block;
      taken.chunk = taker;
      const DeviceId to = schedule_.device_of_chunk[taker];
      if (to == device) {
        made_.draft.after(at_block(taken), at_block(block));
        continue;
      }
      const Route& route = route_to(device, to);
      const auto message = made_.draft.add_message(route.sends, route.receives, Duration{0},
                                                   Duration{0}, Bytes{1}, block);
      made_.noted(message.send, route.slot);
      made_.noted(message.recv, latency_);
      made_.draft.after(message.send, at_block(block));
      made_.draft.after(at_block(taken), message.recv);
    }
  }

  const Route& route_to(DeviceId from, DeviceId to) {
    const auto [found, is_new] = routes_.emplace(std::pair{from, to}, Route{});
    if (is_new) {
      const ResourceId link =
          made_.draft.add_resource(fmt::format("link {}>{}", from, to), ResourceKind::link);
      found->second.sends = made_.draft.add_lane(ranks_[index(from)], fmt::format("send>{}", to),
                                                 OpKind::send, {link});
      found->second.receives =
          made_.draft.add_lane(ranks_[index(to)], fmt::format("recv<{}", from), OpKind::recv);
      const int low = std::min(number(from), number(to));
      const int border = std::abs(number(from) - number(to)) == 1 ? low : row_.pipeline - 1;
      found->second.slot = made_.add_slot({.kind = SlotKind::message, .stage = border});
    }
    return found->second;
  }

  [[nodiscard]] double weights_of(DeviceId device) const {
    double weights = 0;
    for (const ChunkId chunk : chunks_on(schedule_, device))
      weights += layer_weights_of_gpu(row_, layers_of_chunk(row_, number(chunk)));
    const bool embeds = number(device) == 0 || number(device) + 1 == row_.pipeline;
    return weights + (embeds ? embedding_weights_of_gpu(row_) : 0);
  }

  void add_steps() {
    const bool ties = row_.pipeline > 1;
    std::vector<LaneId> ends{collective_.front(), collective_.back()};
    std::vector<Handle> before(ranks_.size());
    for (const DeviceId device : schedule_.device_ids()) {
      const std::size_t rank = index(device);
      const Handle last = at_block(schedule_.row(ReplicaId{0}, device).back());
      const int chunk = number(schedule_.row(ReplicaId{0}, device).back().chunk);
      before[rank] =
          made_.add_collective(collective_[rank],
                               made_.add_slot({.kind = SlotKind::reduce,
                                               .layers = double(layers_of_chunk(row_, chunk)),
                                               .embedding = chunk == 0,
                                               .head = chunk + 1 == schedule_.chunks,
                                               .weights = weights_of(device)}),
                               CollectiveKind::all_reduce);
      made_.draft.after(before[rank], last);
    }
    if (ties) {
      const std::uint32_t slot =
          made_.add_slot({.kind = SlotKind::tied, .weights = embedding_weights_of_gpu(row_)});
      const auto members =
          made_.draft.add_collective(CollectiveKind::all_reduce, ends, Duration{0});
      for (const Handle member : members) made_.noted(member, slot);
      before.front() = members.front();
      before.back() = members.back();
    }
    for (const DeviceId device : schedule_.device_ids()) {
      const Handle step =
          made_.add_block(compute_[index(device)],
                          made_.add_slot({.kind = SlotKind::step, .weights = weights_of(device)}),
                          {.kind = BlockKind::W});
      made_.draft.after(step, before[index(device)]);
    }
  }

  Handle& at_block(const Block& block) {
    const std::size_t pass = block.kind == BlockKind::F ? 0 : 1;
    return blocks_[(to_size(number(block.chunk)) * 2 + pass) * to_size(schedule_.microbatches) +
                   at(block.microbatch)];
  }

  const TrainingRow& row_;
  Schedule schedule_;
  RowDraft made_;
  std::vector<Rank> ranks_;
  std::vector<LaneId> compute_, collective_;
  std::vector<Handle> blocks_;
  std::map<std::pair<DeviceId, DeviceId>, Route> routes_;
  std::uint32_t latency_ = 0;
};

}  // namespace

RowDraft draft_pipeline(const TrainingRow& row) { return PipelineDraft{row}.make(); }

}  // namespace longhaul::planner
