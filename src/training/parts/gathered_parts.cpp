// What ReplicaWork does for the replicas of a node that have one sum, and step once.
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "compress/sparse_set.hpp"
#include "compress/wire/dense.hpp"
#include "compress/wire/values.hpp"
#include "training/parts/replica_work.hpp"

namespace longhaul::training {

/// Each rank of a node looks at its own gradient: no one sees in a sum whose number it was.
void ReplicaWork::look_at(std::size_t number, int iteration, std::vector<float>& gradient) {
  forget_bad(gradient);
  try {
    compress::require_finite(gradient);
  } catch (const compress::NotFinite& error) {
    name_bad(number, iteration, error.index());
  }
  if (settings_.accounts) add_up(parts_[number]->seen, gradient);
}

/// In the order of replicas, one number added to the other.
void ReplicaWork::gather(std::size_t number, int iteration) {
  const PlannedPart& planned = ops_.parts()[number];
  if (planned.gradients.empty()) return;  // each replica makes a set of its own
  const Part& part = *parts_[number];
  std::vector<float> sum;
  {
    const std::lock_guard lock{mutex_};
    sum = std::move(flight(number, iteration).gradient);
  }
  for (const SetPayload& other : sets_of(number, iteration, 0, planned.gradients, false)) {
    const std::vector<float> gradient = compress::decode_dense(
        other.payload, {other.source, static_cast<std::int64_t>(part.in_chunk.count)});
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
  }
  {
    const std::lock_guard lock{mutex_};
    Flight& here = flight(number, iteration);
    for (const int message : planned.gradients) here.received.erase(message);
    here.gradient = std::move(sum);
  }
  if (!planned.has_compress) make_own_set(number, iteration);
}

/// As they are: also those of a run that has diverged, which no set may hold.
void ReplicaWork::take_weights(std::size_t number, int iteration,
                               std::span<const std::byte> payload) {
  Part& part = *parts_[number];
  const std::span<const std::byte> numbers = opened(payload);
  std::vector<float> weights(part.in_chunk.count);
  const std::size_t size = weights.size() * sizeof(float);
  if (numbers.size() != compress::kPayloadHeader + size)
    fail("{}: weights come as {} bytes (there are {} numbers). Both ranks have to run one program.",
         name_of(number, iteration, self_), numbers.size(), weights.size());
  std::memcpy(weights.data(), numbers.data() + compress::kPayloadHeader, size);
  const std::lock_guard lock{mutex_};
  part.made[iteration] = std::make_shared<const std::vector<float>>(weights);
  part.weights = std::move(weights);
  flight(number, iteration).updated = true;
  forget_if_over(part, number, iteration);
}

std::size_t ReplicaWork::largest_set(std::size_t number) const {
  const Part& part = *parts_[number];
  std::size_t size = part.method ? part.method->largest_set() : 0;
  if (ops_.parts()[number].is_gathered())
    size = std::max(size, compress::kPayloadHeader + part.in_chunk.count * sizeof(float));
  return sizeof(SetEnvelope) + size;
}

std::span<const float> ReplicaWork::residual(std::size_t part) const {
  return parts_[part]->method ? parts_[part]->method->residual() : std::span<const float>{};
}

/// Nothing where the one that leads forgets something: it knows.
std::span<const double> ReplicaWork::gradients_seen(std::size_t number) const {
  const Part& part = *parts_[number];
  const bool forgets = part.method && part.method->gradients_seen().empty();
  if (!ops_.parts()[number].is_gathered()) return part.method->gradients_seen();
  return forgets ? std::span<const double>{} : part.seen;
}

std::span<const double> ReplicaWork::sums_seen(std::size_t part) const {
  return parts_[part]->method ? parts_[part]->method->sums_seen() : std::span<const double>{};
}

}  // namespace longhaul::training
