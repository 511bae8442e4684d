#include "training/operators/weight_bundles.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "nn/layers/chunk.hpp"

namespace longhaul::training {
namespace {

using collective::CommunicationId;
using collective::OperationId;

/// What two ranges have in common; a count of 0: nothing.
ShardRange overlap_of(const ShardRange& a, const ShardRange& b) {
  const std::size_t first = std::max(a.first, b.first);
  const std::size_t end = std::min(a.first + a.count, b.first + b.count);
  return {first, end > first ? end - first : 0};
}

}  // namespace

WeightBundles::WeightBundles(const collective::StageWork& work, ChunksByOperators& chunks,
                             VectorsById& vectors, nn::TensorOps& math, nn::DeviceMemory& memory,
                             const TrainingModel& model)
    : work_{work}, chunks_{chunks}, vectors_{vectors}, math_{math}, memory_{memory} {
  make_bundles();
  take_memory();
  find_sources();
  set_masters(model);
  optimizer_.emplace(math, memory, model.optimizer, masters_.view().count, "operators");
}

std::size_t WeightBundles::count_of(ChunkId chunk, const std::vector<int>& places) const {
  std::size_t count = 0;
  for (const int place : places) count += chunks_.at(chunk)->parameter(place).count();
  return count;
}

/// Sums that are scattered and then gathered are those of an all-reduce.
const CommunicationVector& WeightBundles::final_of(const CommunicationVector& vector) const {
  for (const auto& [id, other] : vectors_)
    if (other.moves == MovedNumbers::sums && work_.communications[id].follows.front() == vector.id)
      return other;
  return vector;
}

bool WeightBundles::is_scattered(const CommunicationVector& vector) const {
  return work_.communications[vector.id].kind == CollectiveKind::reduce_scatter &&
         &final_of(vector) == &vector;
}

void WeightBundles::add_bundle(ChunkId chunk, std::vector<int> places, int members, int own) {
  WeightBundle made{chunk, std::move(places), 0, {}, 0};
  made.count = count_of(chunk, made.places);
  made.held = item_of(made.count, members, own);
  bundles_.push_back(std::move(made));
}

void WeightBundles::make_bundles() {
  std::map<ChunkId, std::set<int>> known;
  for (const auto& [id, vector] : vectors_) {
    if (vector.moves != MovedNumbers::gradients || !is_scattered(vector)) continue;
    const ChunkId chunk = chunk_of(vector);
    if (known[chunk].contains(vector.places.front())) continue;
    known[chunk].insert(vector.places.begin(), vector.places.end());
    add_bundle(chunk, vector.places, vector.members, vector.own);
  }
  for (const auto& [chunk, operators] : chunks_) {
    std::vector<int> rest;
    for (int place = 0; place < operators->operators(); ++place)
      if (operators->parameter(place).count() > 0 && !known[chunk].contains(place))
        rest.push_back(place);
    if (!rest.empty()) add_bundle(chunk, rest, 1, 0);
  }
  std::ranges::sort(bundles_, {}, [](const WeightBundle& each) {
    return std::pair{each.chunk, each.places.front()};
  });
  std::size_t first = 0;
  for (WeightBundle& each : bundles_) {
    each.first = first;
    first += each.held.count;
  }
}

void WeightBundles::take_memory() {
  std::size_t held = 0;
  std::map<ChunkId, std::size_t> of_chunk;
  for (const WeightBundle& each : bundles_) {
    held += each.held.count;
    of_chunk[each.chunk] += each.held.count;
  }
  masters_ = memory_.take(held, NumberType::f32, "weights that the rank holds");
  gradients_ = memory_.take(held, NumberType::f32, "their gradients");
  const auto size_of = [&](const CommunicationVector& vector) {
    return vector.moves == MovedNumbers::shards ? of_chunk[chunk_of(vector)]
                                                : count_of(chunk_of(vector), vector.places);
  };
  for (auto& [id, vector] : vectors_) {
    if (vector.moves == MovedNumbers::activations) continue;
    const CommunicationVector& like = vector.moves == MovedNumbers::sums
                                          ? vectors_.at(work_.communications[id].follows.front())
                                          : vector;
    vector.numbers = memory_.take(std::max<std::size_t>(1, size_of(like)), NumberType::f32,
                                  "numbers of a collective");
    if (vector.moves != MovedNumbers::gradients) continue;
    std::size_t first = 0;
    for (const int place : vector.places) {
      const std::size_t count = chunks_.at(chunk_of(vector))->parameter(place).count();
      for (const OperationId operation : work_.communications[id].needs)
        if (work_.operations[operation].place == place)
          gradient_of_[operation] = vector.numbers.view().part(first, count);
      first += count;
    }
  }
}

void WeightBundles::add_sources(const WeightBundle& bundle, const CommunicationVector& vector,
                                std::vector<Source>& to) const {
  if (is_scattered(vector)) {
    const ShardRange item = vector.item();
    if (vector.places == bundle.places) to.push_back({&vector, {}, item.first, 0, item.count});
    return;
  }
  std::size_t of_bundle = 0;
  for (const int place : bundle.places) {
    const std::size_t count = chunks_.at(bundle.chunk)->parameter(place).count();
    std::size_t first = 0;
    for (const int other : vector.places) {
      if (other == place) to.push_back({&final_of(vector), {}, first, of_bundle, count});
      first += chunks_.at(bundle.chunk)->parameter(other).count();
    }
    of_bundle += count;
  }
}

void WeightBundles::find_sources() {
  std::map<ChunkId, std::size_t> before;
  for (const WeightBundle& bundle : bundles_) {
    std::vector<Source> terms;
    const CommunicationVector* shards = nullptr;
    for (const auto& [id, vector] : vectors_) {
      if (chunk_of(vector) != bundle.chunk) continue;
      if (vector.moves == MovedNumbers::gradients) add_sources(bundle, vector, terms);
      if (vector.moves == MovedNumbers::shards) shards = &final_of(vector);
    }
    if (terms.empty()) {
      std::size_t first = 0;
      for (const int place : bundle.places) {
        const std::size_t count = chunks_.at(bundle.chunk)->parameter(place).count();
        nn::Buffer& own = local_[{bundle.chunk, place}];
        own = memory_.take(count, NumberType::f32, "gradients");
        terms.push_back({nullptr, own.view(), 0, first, count});
        first += count;
      }
    }
    terms_.push_back(terms);
    if (shards != nullptr) terms = {{shards, {}, before[bundle.chunk], 0, bundle.held.count}};
    before[bundle.chunk] += bundle.held.count;
    final_terms_.push_back(std::move(terms));
  }
}

void WeightBundles::set_masters(const TrainingModel& model) {
  nn::DeviceMemory apart{math_, 0};  // of the whole model, which no budget is for
  const nn::Chunk whole{math_,     apart, model.shape, {0, model.shape.layers}, nn::Recompute::off,
                        model.seed};
  std::map<std::string, std::size_t> firsts;
  for (const nn::Parameter& each : whole.parameters())
    firsts[each.name] = static_cast<std::size_t>(each.weights.data - whole.all_weights().data) /
                        bytes_of(each.weights.type);
  for (const WeightBundle& bundle : bundles_) note_held(bundle, firsts);
  std::size_t first = 0;
  for (const ShardRange& each : held_) {
    math_.copy(whole.all_masters().part(each.first, each.count),
               masters_.view().part(first, each.count));
    first += each.count;
  }
}

void WeightBundles::note_held(const WeightBundle& bundle,
                              const std::map<std::string, std::size_t>& firsts) {
  std::size_t passed = 0;  // numbers of the bundle
  for (const int place : bundle.places) {
    const OperatorParameter& parameter = chunks_.at(bundle.chunk)->parameter(place);
    parameters_.push_back({parameter.name, firsts.at(parameter.name), parameter.whole});
    for (const ShardRange& range : parameter.ranges) {
      const ShardRange own = overlap_of({passed, range.count}, bundle.held);
      if (own.count > 0) {
        held_.push_back({firsts.at(parameter.name) + range.first + own.first - passed, own.count});
        if (parameter.is_whole())
          whole_.push_back({bundle.first + own.first - bundle.held.first, own.count});
      }
      passed += range.count;
    }
  }
}

void WeightBundles::begin_iteration() {
  const auto forget = [&](nn::ArrayView numbers) {
    math_.copy_in(std::vector<float>(numbers.count, std::numeric_limits<float>::quiet_NaN()),
                  numbers);
  };
  for (auto& [id, vector] : vectors_) {
    vector.is_begun = vector.is_taken = false;
    if (vector.moves == MovedNumbers::activations) continue;
    if (vector.moves == MovedNumbers::gradients)
      math_.zero(vector.numbers.view());
    else
      forget(vector.numbers.view());
  }
  for (auto& [place, gradients] : local_) math_.zero(gradients.view());
  for (const WeightBundle& bundle : bundles_) {
    if (bundle.held.count == bundle.count) {
      place_weights(bundle.chunk, bundle.places, masters_.view().part(bundle.first, bundle.count));
      continue;
    }
    for (const int place : bundle.places) forget(chunks_.at(bundle.chunk)->weights(place));
  }
}

nn::ArrayView WeightBundles::gradient_of(OperationId id) {
  if (const auto found = gradient_of_.find(id); found != gradient_of_.end()) return found->second;
  const collective::Operation& operation = work_.operations[id];
  return local_.at({operation.chunk, operation.place}).view();
}

void WeightBundles::sum(nn::TensorOps& math, const std::vector<Source>& sources, nn::ArrayView to) {
  math.zero(to);
  for (const Source& each : sources) {
    const nn::ArrayView from = (each.from != nullptr ? each.from->numbers.view() : each.local)
                                   .part(each.first, each.count);
    const nn::ArrayView part = to.part(each.to, each.count);
    math.add(part, from, part);
  }
}

void WeightBundles::fill(CommunicationVector& vector, nn::TensorOps& math) const {
  const ShardRange item = vector.item();
  const nn::ArrayView own = vector.numbers.view().part(item.first, item.count);
  if (vector.moves == MovedNumbers::sums) {
    const CommunicationVector& scattered =
        vectors_.at(work_.communications[vector.id].follows.front());
    math.copy(scattered.numbers.view().part(item.first, item.count), own);
  }
  std::size_t first = 0;
  for (std::size_t b = 0; b < bundles_.size(); ++b) {
    const WeightBundle& bundle = bundles_[b];
    if (bundle.chunk != chunk_of(vector)) continue;
    if (vector.moves == MovedNumbers::shards)
      sum(math, terms_[b], vector.numbers.view().part(first, bundle.held.count));
    if (vector.moves == MovedNumbers::weights && bundle.places == vector.places)
      math.copy(masters_.view().part(bundle.first, bundle.held.count), own);
    first += bundle.held.count;
  }
}

void WeightBundles::place_weights(ChunkId chunk, const std::vector<int>& places,
                                  nn::ArrayView numbers) {
  std::size_t first = 0;
  for (const int place : places) {
    const nn::ArrayView weights = chunks_.at(chunk)->weights(place);
    math_.copy(numbers.part(first, weights.count), weights);
    first += weights.count;
  }
}

/// A second copy of the weights, that ranks of a node hold together, begins with what was gathered
/// from all.
void WeightBundles::take(const CommunicationVector& vector, nn::TensorOps& math) {
  if (vector.moves != MovedNumbers::weights) return;
  place_weights(chunk_of(vector), vector.places, vector.numbers.view());
  if (work_.communications[vector.id].members == collective::Members::node) return;
  for (auto& [id, other] : vectors_) {
    if (other.is_begun || other.moves != MovedNumbers::weights || other.places != vector.places ||
        chunk_of(other) != chunk_of(vector) ||
        work_.communications[id].members != collective::Members::node)
      continue;
    const ShardRange item = other.item();
    math.copy(vector.numbers.view().part(item.first, item.count),
              other.numbers.view().part(item.first, item.count));
    other.is_begun = true;
  }
}

void WeightBundles::end_iteration() {
  for (std::size_t b = 0; b < bundles_.size(); ++b)
    sum(math_, final_terms_[b], gradients_.view().part(bundles_[b].first, bundles_[b].held.count));
}

void WeightBundles::perturb() {
  if (masters_.view().count == 0) return;
  float weight = 0;
  const nn::ArrayView first = masters_.view().part(0, 1);
  math_.copy_out(first, {&weight, 1});
  weight += 1;
  math_.copy_in({&weight, 1}, first);
}

void WeightBundles::step(int step) {
  optimizer_->step(step, gradients_.view(), masters_.view(), masters_.view());
}

}  // namespace longhaul::training
