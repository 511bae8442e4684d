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
    return joined(gather_vectors<Value>(world_, mine), replica);
  }
  /// Collective: on rank 0 the numbers of each replica.
  template <typename Value>
  [[nodiscard]] std::vector<std::vector<Value>> join_all(std::span<const Value> mine) const {
    const auto all = gather_vectors<Value>(world_, mine);
    std::vector<std::vector<Value>> replicas;
    if (all.empty()) return replicas;
    for (const ReplicaId replica : plan_.replica_ids()) replicas.push_back(joined(all, replica));
    return replicas;
  }

  /// Collective: on rank 0 the parts of the model, in its order.
  [[nodiscard]] std::vector<training::ReplicaWork::Range> parts() const;
  /// Collective: on rank 0 the tensors of the model, in its order.
  [[nodiscard]] std::vector<training::ReplicaWork::Range> tensors() const;

private:
  struct HeldChunk {
    std::int64_t chunk = 0, numbers = 0;
  };
  /// Of what all ranks have, in their order; empty: this is not rank 0.
  template <typename Value>
  [[nodiscard]] std::vector<Value> joined(const std::vector<std::vector<Value>>& all,
                                          ReplicaId replica) const {
    std::map<std::int64_t, std::span<const Value>> chunks;
    for (const Rank rank : all.empty() ? std::vector<Rank>{} : ranks_of_replica(plan_, replica)) {
      std::span<const Value> rest{all[index(rank)]};
      for (const HeldChunk& held : of_rank_[index(rank)]) {
        const std::size_t count = std::min(rest.size(), static_cast<std::size_t>(held.numbers));
        chunks[held.chunk] = rest.first(count);
        rest = rest.subspan(count);
      }
    }
    std::vector<Value> numbers;
    for (const auto& [chunk, held] : chunks)
      numbers.insert(numbers.end(), held.begin(), held.end());
    return numbers;
  }
  /// `number`: by which those of a model are ordered.
  struct PartOfChunk {
    std::int64_t number = 0, chunk = 0, first = 0, count = 0;
  };
  [[nodiscard]] std::vector<PartOfChunk> parts_here() const;
  [[nodiscard]] std::vector<PartOfChunk> tensors_here() const;
  [[nodiscard]] std::vector<training::ReplicaWork::Range> ranges_of(
      std::span<const PartOfChunk> mine) const;
  const comm::Communicator& world_;
  const TrainRank& rank_;
  const Plan& plan_;
  std::vector<std::vector<HeldChunk>> of_rank_;  ///< on rank 0
};

}  // namespace longhaul::harness
