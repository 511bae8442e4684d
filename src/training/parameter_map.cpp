#include "training/parameter_map.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::training {
namespace {

struct StageDescription {
  std::size_t count = 0;
  std::vector<ParameterExtent> tensors;
};

/// Takes what a rank said apart; places are still those in the stage.
std::vector<ShardExtent> read_rank(std::istream& text,
                                   std::map<StageId, StageDescription>& stages) {
  std::vector<ShardExtent> held;
  ShardExtent each;
  int number = 0;
  std::size_t count = 0, tensors = 0;
  while (text >> number >> count >> each.first >> each.count >> tensors) {
    each.stage = StageId{number};
    held.push_back(each);
    StageDescription stage{count, {}};
    for (std::size_t i = 0; i < tensors; ++i) {
      ParameterExtent place;
      text >> place.first >> place.count;
      text.ignore();
      std::getline(text, place.name);
      stage.tensors.push_back(std::move(place));
    }
    stages.emplace(each.stage, std::move(stage));
  }
  return held;
}

}  // namespace

/// Numbers that no rank holds are compared with nothing.
void ParameterMap::require_complete() const {
  std::vector<ShardExtent> held;
  for (const auto& of_one : of_rank) held.insert(held.end(), of_one.begin(), of_one.end());
  std::ranges::sort(held, {}, &ShardExtent::first);
  std::size_t reached = 0;
  for (const ShardExtent& each : held) {
    LONGHAUL_ASSERT(each.first <= reached, "nobody holds numbers {} to {} of the model", reached,
                    each.first);
    reached = std::max(reached, each.first + each.count);
  }
  LONGHAUL_ASSERT(reached == count, "nobody holds numbers {} to {} of the model", reached, count);
}

/// A line for each stage, and one for each of its tensors.
std::string ParameterMap::to_text(const std::vector<StageShard>& stages) {
  std::string text;
  for (const StageShard& stage : stages) {
    const nn::Chunk& chunk = stage.chunk();
    const nn::ArrayView all = chunk.all_weights();
    text += fmt::format("{} {} {} {} {}\n", stage.stage(), all.count, stage.held().first,
                        stage.held().count, chunk.parameters().size());
    for (const nn::Parameter& parameter : chunk.parameters()) {
      const auto bytes = to_size(parameter.weights.data - all.data);
      text +=
          fmt::format("{} {} {}\n", bytes / bytes_of(all.type), parameter.count, parameter.name);
    }
  }
  return text;
}

ParameterMap ParameterMap::make(const comm::Communicator& world,
                                const std::vector<StageShard>& stages) {
  const std::string mine = to_text(stages);
  std::vector<int> counts;
  const auto bytes = world.gather(std::as_bytes(std::span{mine}), counts);
  std::string all;
  const char* at = reinterpret_cast<const char*>(bytes.data());
  for (const int count : counts) {
    all += std::string{at, at + count} + '\f';
    at += count;
  }
  std::istringstream texts{world.broadcast(std::move(all))};
  std::vector<std::string> of_ranks;
  for (std::string text; std::getline(texts, text, '\f');) of_ranks.push_back(text);
  return read(of_ranks);
}

ParameterMap ParameterMap::read(const std::vector<std::string>& of_ranks) {
  ParameterMap map;
  std::map<StageId, StageDescription> described;
  for (const std::string& text : of_ranks) {
    std::istringstream lines{text};
    map.of_rank.push_back(read_rank(lines, described));
  }
  for (auto& [id, stage] : described) {
    map.stage_first.push_back(map.count);
    for (ParameterExtent& tensor : stage.tensors) {
      tensor.first += map.count;
      map.tensors.push_back(std::move(tensor));
    }
    map.count += stage.count;
  }
  for (auto& held : map.of_rank)
    for (ShardExtent& each : held) each.first += map.first_of(each.stage);
  map.require_complete();
  return map;
}

std::size_t ParameterMap::count_of(Rank rank) const {
  std::size_t sum = 0;
  for (const ShardExtent& held : of_rank[rank]) sum += held.count;
  return sum;
}

std::vector<std::vector<float>> gather_numbers(const comm::Communicator& world,
                                               std::span<const float> mine) {
  constexpr std::size_t kOnce = 4U << 20U;  // of a rank: MPI counts bytes of all in an int
  const auto most = to_size(world.maximum(std::ssize(mine)));
  std::vector<std::vector<float>> of_rank(world.rank() == 0 ? to_size(world.size()) : 0);
  for (std::size_t first = 0; first < most; first += kOnce) {
    const std::size_t begin = std::min(first, mine.size());
    const auto part = mine.subspan(begin, std::min(kOnce, mine.size() - begin));
    std::vector<int> counts;
    const auto bytes = world.gather(std::as_bytes(part), counts);
    const std::byte* at = bytes.data();
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
      const auto size = to_size(counts[rank]);
      std::vector<float>& numbers = of_rank[rank];
      numbers.resize(numbers.size() + size / sizeof(float));
      if (size > 0) std::memcpy(numbers.data() + numbers.size() - size / sizeof(float), at, size);
      at += size;
    }
  }
  return of_rank;
}

void broadcast_numbers(const comm::Communicator& world, std::vector<float>& numbers) {
  constexpr std::size_t kOnce = 64U << 20U;
  const auto count = to_size(world.maximum(std::ssize(numbers)));
  const bool first = world.rank() == 0;
  numbers.resize(count);
  for (std::size_t at = 0; at < count; at += kOnce) {
    const std::size_t size = std::min(kOnce, count - at) * sizeof(float);
    auto* place = reinterpret_cast<char*>(numbers.data() + at);
    const std::string text = world.broadcast(first ? std::string{place, size} : std::string{});
    std::memcpy(place, text.data(), size);
  }
}

std::vector<float> assembled(const ParameterMap& map,
                             const std::vector<std::vector<float>>& of_rank) {
  std::vector<float> model(map.count);
  for (Rank rank = map.of_rank.end_id(); index(rank) > 0;) {  // the first holder comes last
    rank = previous(rank);
    const float* at = of_rank[index(rank)].data();
    for (const ShardExtent& held : map.of_rank[rank]) {
      std::copy_n(at, held.count, model.begin() + static_cast<std::ptrdiff_t>(held.first));
      at += held.count;
    }
  }
  return model;
}

}  // namespace longhaul::training
