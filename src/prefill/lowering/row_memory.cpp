#include "prefill/lowering/row_memory.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "prefill/prompt/kv_link.hpp"

namespace longhaul::prefill {
namespace {

/// Changes of what a GPU has free, by time; what is released at an instant is free before what is
/// taken at it.
class MemoryChanges {
public:
  void take(Duration from, Duration until, Bytes bytes) {
    changes_.push_back({from, bytes.count()});
    changes_.push_back({until, -bytes.count()});
  }
  void change(Duration time, Bytes taken) { changes_.push_back({time, taken.count()}); }
  [[nodiscard]] Bytes peak(Bytes used) {
    std::ranges::sort(changes_);
    Bytes peak = used;
    for (const auto& [time, taken] : changes_) {
      used += Bytes{taken};
      peak = std::max(peak, used);
    }
    return peak;
  }

private:
  std::vector<std::pair<Duration, std::int64_t>> changes_;
};

struct HeldTime {
  Duration from = Duration::max(), until{};
  int stage = 0;
};

/// Of each prompt that ran, when it held memory of each GPU.
using HeldTimes = std::map<std::pair<std::size_t, std::int32_t>, HeldTime>;

HeldTimes held_times(const FilledPlan& filled, const std::vector<Served>& served,
                     const std::vector<Decision>& decisions, const OpResults& results) {
  const auto ran = [&](OpId op) {
    return results.outcomes.empty() || has_run(results.outcomes[index(op)]);
  };
  HeldTimes held;
  std::map<std::size_t, Duration> ends;  // of all stages that ran
  for (const FilledStage& stage : filled.stages)
    for (std::size_t op = index(stage.first); op <= index(stage.op); ++op) {
      if (!ran(OpId{static_cast<std::uint32_t>(op)})) break;
      HeldTime& own = held[{stage.placed.decision, static_cast<std::int32_t>(stage.placed.rank)}];
      own.stage = stage.placed.stage;
      own.from = std::min(own.from, results.times[op].start);
      own.until = std::max(own.until, results.times[op].end);
      Duration& end = ends[stage.placed.decision];
      end = std::max(end, own.until);
    }
  for (const FilledMessage& message : filled.messages) {
    const PlacedStage& of = filled.stages[message.stage].placed;
    const auto own = held.find({of.decision, static_cast<std::int32_t>(of.rank)});
    if (message.is_slice && own != held.end() && ran(message.send))
      own->second.until = std::max(own->second.until, results.times[index(message.send)].end);
  }
  for (auto& [of, own] : held)
    if (!sends_kv(served[decisions[of.first].model].model))
      own.until = std::max(own.until, ends[of.first]);
  return held;
}

}  // namespace

std::vector<GpuMemory> memory_of_rows(const MemoryBesideBlocks& memory, const TrainingGraph& graph,
                                      const std::vector<Served>& served, const FilledPlan& filled,
                                      const std::vector<Decision>& decisions,
                                      const OpResults& results) {
  std::vector<MemoryChanges> changes(to_size(graph.gpus()));
  for (const auto& [of, own] : held_times(filled, served, decisions, results)) {
    const Decision& decision = decisions[of.first];
    const ServedModel& model = served[decision.model].model;
    changes[at(of.second)].take(own.from, own.until,
                                held_memory(model, decision.tokens, own.stage));
  }
  std::vector<GpuMemory> all;
  for (std::int32_t rank = 0; rank < graph.gpus(); ++rank) {
    const BlockMemory* const blocks = memory.of(rank);
    if (blocks == nullptr) continue;
    Bytes free = blocks->first;
    for (std::size_t i = 0; i < blocks->during.size(); ++i) {
      const OpId op = graph.nodes()[graph.blocks(rank)[i]].op;
      const OpTime& time = results.times[index(filled.training[index(op)])];
      changes[at(rank)].change(time.start, free - blocks->during[i]);
      changes[at(rank)].change(time.end, blocks->during[i] - blocks->after[i]);
      free = blocks->after[i];
    }
    all.push_back(
        {rank, blocks->capacity, changes[at(rank)].peak(blocks->capacity - blocks->first)});
  }
  return all;
}

}  // namespace longhaul::prefill
