#include "harness/training/whole_model.hpp"

#include "base/index.hpp"

namespace longhaul::harness {

std::vector<Rank> ranks_of_replica(const Plan& plan, ReplicaId replica) {
  std::vector<Rank> ranks;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r)
    if (plan.ranks[r].replica == replica) ranks.push_back(Rank{static_cast<std::int32_t>(r)});
  return ranks;
}

WholeModel::WholeModel(const comm::Communicator& world, const TrainRank& rank)
    : world_{world}, rank_{rank}, plan_{rank.plan()} {
  std::vector<HeldChunk> mine;
  if (rank.work() != nullptr)
    for (const auto& [chunk, numbers] : rank.work()->chunks())
      mine.push_back({number(chunk), static_cast<std::int64_t>(numbers->all_weights().count)});
  of_rank_ = gather_vectors<HeldChunk>(world, mine);
}

std::vector<WholeModel::PartOfChunk> WholeModel::parts_here() const {
  std::vector<PartOfChunk> mine;
  const training::ReplicaWork* const work = rank_.work();
  if (work == nullptr) return mine;
  std::map<ChunkId, std::size_t> first_of_chunk;  // among the numbers of this rank
  std::size_t before = 0;
  for (const auto& [chunk, numbers] : work->chunks()) {
    first_of_chunk[chunk] = before;
    before += numbers->all_weights().count;
  }
  for (std::size_t p = 0; p < work->ranges().size(); ++p) {
    const plan::TrainedPart& part = work->part_ops().parts()[p].trained;
    const auto [first, count] = work->ranges()[p];
    mine.push_back({part.number, number(part.chunk),
                    static_cast<std::int64_t>(first - first_of_chunk.at(part.chunk)),
                    static_cast<std::int64_t>(count)});
  }
  return mine;
}

std::vector<WholeModel::PartOfChunk> WholeModel::tensors_here() const {
  std::vector<PartOfChunk> mine;
  if (rank_.work() == nullptr) return mine;
  for (const auto& [chunk, numbers] : rank_.work()->chunks()) {
    std::int64_t ordinal = std::int64_t{number(chunk)} << 32;
    const std::byte* const begin = numbers->all_gradients().data;
    for (const nn::Parameter& each : numbers->parameters())
      mine.push_back({ordinal++, number(chunk),
                      (each.gradient.data - begin) / static_cast<std::int64_t>(sizeof(float)),
                      static_cast<std::int64_t>(each.count)});
  }
  return mine;
}

std::vector<training::ReplicaWork::Range> WholeModel::parts() const {
  return ranges_of(parts_here());
}

std::vector<training::ReplicaWork::Range> WholeModel::tensors() const {
  return ranges_of(tensors_here());
}

std::vector<training::ReplicaWork::Range> WholeModel::ranges_of(
    std::span<const PartOfChunk> mine) const {
  const auto all = gather_vectors<PartOfChunk>(world_, mine);
  std::vector<training::ReplicaWork::Range> parts;
  if (all.empty()) return parts;
  std::map<std::int64_t, std::int64_t> numbers_of;  // by chunk
  std::map<std::int64_t, PartOfChunk> by_number;
  for (const Rank rank : ranks_of_replica(plan_, ReplicaId{0})) {
    for (const HeldChunk& held : of_rank_[index(rank)]) numbers_of[held.chunk] = held.numbers;
    for (const PartOfChunk& part : all[index(rank)]) by_number[part.number] = part;
  }
  for (const auto& [number, part] : by_number) {
    std::int64_t first = part.first;
    for (const auto& [chunk, numbers] : numbers_of)
      if (chunk < part.chunk) first += numbers;
    parts.push_back({static_cast<std::size_t>(first), static_cast<std::size_t>(part.count)});
  }
  return parts;
}

}  // namespace longhaul::harness
