#include "prefill/lowering/held_memory.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "prefill/prompt/memory_over_time.hpp"

namespace longhaul::prefill {
namespace {

/// The passes that keep a prompt's memory held on the GPU of a stage. Of a prompt that sends
/// nothing those of all stages do, until the last one is over; of one that sends whole what leaves
/// with the last pass, all leaves.
std::vector<Closings::Pass> passes_of(const FilledPlan& filled, std::size_t first, std::size_t last,
                                      int stage,
                                      const std::unordered_map<std::size_t, OpId>& slices,
                                      const Closings& closings, const FillOptions& options) {
  std::vector<Closings::Pass> passes;
  for (std::size_t i = first; i < last; ++i) {
    const auto slice = slices.find(i);
    if (!slices.empty() && slices.contains(first) && filled.stages[i].placed.stage != stage)
      continue;
    passes.push_back({filled.stages[i].op, slice == slices.end() ? kNone<OpId> : slice->second,
                      closings.of_stage.at(filled.stages[i].first)});
  }
  if (options.kv == KvSending::whole)
    for (std::size_t i = 0; i + 1 < passes.size(); ++i) passes[i].slice = kNone<OpId>;
  return passes;
}

}  // namespace

void add_holdings(Closings& closings, const FilledPlan& filled, const std::vector<Served>& served,
                  const std::vector<Decision>& decisions, const FillOptions& options) {
  closings.memory = options.memory;
  std::unordered_map<std::size_t, OpId> slices;  // the last, by stage
  for (const FilledMessage& message : filled.messages)
    if (message.is_slice) slices[message.stage] = message.send;
  const auto& stages = filled.stages;
  for (std::size_t first = 0, last = 0; first < stages.size(); first = last) {
    const Decision& own = decisions[stages[first].placed.decision];
    const ServedModel& model = served[own.model].model;
    while (last < stages.size() && stages[last].placed.decision == stages[first].placed.decision)
      ++last;
    for (int stage = 0; stage < model.stages; ++stage) {
      const FilledStage& begins = stages[first + to_size(stage)];
      const auto rank = static_cast<std::int32_t>(begins.placed.rank);
      if (options.memory->of(rank) == nullptr) continue;
      closings.holdings.push_back(
          {.rank = rank,
           .bytes = held_memory(model, own.tokens, stage),
           .first = begins.first,
           .planned = begins.placed.start,
           .takes = filled.plan.op(begins.first).duration,
           .length = (own.held_until.empty() ? own.end + own.kv : own.held_until[to_size(stage)]) -
                     begins.placed.start + model.guard,
           .passes = passes_of(filled, first, last, stage, slices, closings, options)});
    }
  }
}

HeldMemory::HeldMemory(const Closings& closings)
    : closings_{closings},
      ended_(closings.training_of.size(), false),
      starts_(closings.holdings.size()) {
  for (std::size_t i = 0; i < closings.holdings.size(); ++i) {
    const Closings::Holding& own = closings.holdings[i];
    holding_of_[own.first] = i;
    if (at(own.rank) >= of_rank_.size()) of_rank_.resize(at(own.rank) + 1);
    of_rank_[at(own.rank)].push_back(i);
  }
}

Duration HeldMemory::release_of(const Closings::Holding& holding, Duration start,
                                ExpectedTraining& expected, Duration now) const {
  Duration late{};
  for (const Closings::Pass& pass : holding.passes)
    if (!ended_[index(pass.last)]) late = std::max(late, lateness(pass.closing, expected, now));
  return std::max(start, holding.planned + late) + holding.length;
}

bool HeldMemory::fits(OpId op, ExpectedTraining& expected, Duration start, Duration now,
                      Duration deadline) {
  const auto own = holding_of_.find(op);
  if (own == holding_of_.end()) return true;
  const Closings::Holding& begins = closings_.holdings[own->second];
  starts_[own->second].reset();
  if (start + begins.takes > deadline) return false;
  auto& others = of_rank_[at(begins.rank)];
  std::erase_if(others, [&](std::size_t i) { return is_over(closings_.holdings[i], expected); });
  std::vector<HeldBytes> held;
  for (const std::size_t i : others) {
    const Closings::Holding& other = closings_.holdings[i];
    if (i != own->second && starts_[i])
      held.push_back({other.bytes, release_of(other, *starts_[i], expected, now)});
  }
  const HeldBytes asks{begins.bytes, release_of(begins, start, expected, now)};
  if (!closings_.memory->fits(begins.rank, expected, now, start, asks, held)) return false;
  starts_[own->second] = start;
  return true;
}

/// A pass that has not ended when the block has that closes its bubble will not begin.
bool HeldMemory::is_over(const Closings::Holding& holding, const ExpectedTraining& expected) const {
  return std::ranges::all_of(holding.passes, [&](const Closings::Pass& pass) {
    if (ended_[index(pass.last)]) return pass.slice == kNone<OpId> || ended_[index(pass.slice)];
    return expected.next_block(pass.closing.rank) > pass.closing.block;
  });
}

}  // namespace longhaul::prefill
