#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "harness/training/train_rank.hpp"

namespace longhaul::harness {

/// Rank 0 gets what each rank has, in order of rank; the others nothing. Collective.
template <typename Value>
std::vector<std::vector<Value>> gather_vectors(const comm::Communicator& world,
                                               std::span<const Value> mine) {
  std::vector<int> counts;
  const std::vector<std::byte> bytes = world.gather(std::as_bytes(mine), counts);
  std::vector<std::vector<Value>> all;
  std::size_t at = 0;
  for (const int count : counts) {
    std::vector<Value>& one = all.emplace_back(static_cast<std::size_t>(count) / sizeof(Value));
    if (count > 0) std::memcpy(one.data(), bytes.data() + at, static_cast<std::size_t>(count));
    at += static_cast<std::size_t>(count);
  }
  return all;
}

/// The ranks of a replica, which hold the model together.
[[nodiscard]] std::vector<Rank> ranks_of_replica(const Plan& plan, ReplicaId replica);

/// Joins what the ranks of one replica hold: their chunks, in the order of the model.
class WholeModel {
public:
  /// Collective. Both outlive this.
  WholeModel(const comm::Communicator& world, const TrainRank& rank);

  /// Collective: on rank 0 the numbers of the replica.
  template <typename Value>
  [[nodiscard]] std::vector<Value> join(std::span<const Value> mine, ReplicaId replica) const {
    const auto all = gather_vectors<Value>(world_, mine);
    std::map<std::int64_t, std::span<const Value>> chunks;
    for (const Rank rank : all.empty() ? std::vector<Rank>{} : ranks_of_replica(plan_, replica)) {
      std::span<const Value> rest{all[index(rank)]};
      for (const HeldChunk& held : of_rank_[index(rank)]) {
        const std::size_t count = std::min(rest.size(), static_cast<std::size_t>(held.numbers));
        chunks[held.chunk] = rest.first(count);
        rest = rest.subspan(count);
      }
    }
    std::vector<Value> joined;
    for (const auto& [chunk, numbers] : chunks)
      joined.insert(joined.end(), numbers.begin(), numbers.end());
    return joined;
  }

  /// Collective: on rank 0 the parts of the model, in its order.
  [[nodiscard]] std::vector<training::ReplicaWork::Range> parts() const;

private:
  struct HeldChunk {
    std::int64_t chunk = 0, numbers = 0;
  };
  struct PartOfChunk {
    std::int64_t number = 0, chunk = 0, first = 0, count = 0;
  };
  [[nodiscard]] std::vector<PartOfChunk> parts_here() const;
  const comm::Communicator& world_;
  const TrainRank& rank_;
  const Plan& plan_;
  std::vector<std::vector<HeldChunk>> of_rank_;  ///< on rank 0
};

}  // namespace longhaul::harness
