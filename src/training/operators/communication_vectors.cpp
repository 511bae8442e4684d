#include "training/operators/communication_vectors.hpp"

#include <algorithm>
#include <set>

namespace longhaul::training {
namespace {

using collective::Communication;
using collective::Members;
using collective::StageWork;
using collective::Traffic;

MovedNumbers moved_by(const Communication& each) {
  if (each.traffic == Traffic::tp) return MovedNumbers::activations;
  const bool gathers = each.kind == CollectiveKind::all_gather;
  if (gathers) return each.follows.empty() ? MovedNumbers::weights : MovedNumbers::sums;
  return each.members == Members::copies ? MovedNumbers::shards : MovedNumbers::gradients;
}

/// Operators of which it has weights or gradients.
std::vector<int> places_of(const StageWork& work, const Communication& each) {
  std::set<int> places;
  for (const collective::Operation& operation : work.operations)
    if (each.unit >= 0 && operation.unit == each.unit && operation.has_weights)
      places.insert(operation.place);
  if (each.unit < 0)
    for (const auto* operations : {&each.needs, &each.needed_by})
      for (const collective::OperationId id : *operations)
        if (work.operations[id].has_weights) places.insert(work.operations[id].place);
  return {places.begin(), places.end()};
}

}  // namespace

ShardRange item_of(std::size_t count, int members, int member) {
  const auto before = [&](std::size_t items) {
    return count / to_size(members) * items + std::min(items, count % to_size(members));
  };
  const std::size_t first = before(to_size(member));
  return {first, before(to_size(member) + 1) - first};
}

ShardRange CommunicationVector::item() const { return item_of(numbers.view().count, members, own); }

std::map<collective::CommunicationId, CommunicationVector> vectors_of(
    const collective::IterationPlan& plan, const collective::LoweredIteration& lowered, Rank self) {
  const DeviceId stage = lowered.plan.ranks[index(self)].device;
  const StageWork& work = plan.stages[stage];
  std::map<collective::CommunicationId, CommunicationVector> vectors;
  for (std::size_t c = 0; c < lowered.plan.stepped.size(); ++c) {
    const collective::CommunicationRef& ref = lowered.communication_of[c];
    const std::vector<Rank>& members = lowered.plan.stepped[c].collective.members;
    const auto own = std::ranges::lower_bound(members, self);
    if (ref.stage != stage || own == members.end() || *own != self) continue;
    const Communication& each = work.communications[ref.communication];
    CommunicationVector& made = vectors[ref.communication];
    made.moves = moved_by(each);
    made.id = ref.communication;
    made.collective = c;
    made.members = static_cast<int>(members.size());
    made.own = static_cast<int>(own - members.begin());
    if (made.moves != MovedNumbers::activations) made.places = places_of(work, each);
  }
  for (auto& [id, each] : vectors)
    if (each.moves == MovedNumbers::sums)
      each.places = vectors.at(work.communications[id].follows.front()).places;
  return vectors;
}

}  // namespace longhaul::training
