#include "training/step_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::training {

struct StepTensors::Pool {
  std::mutex mutex;
  std::map<std::pair<std::size_t, NumberType>, std::vector<nn::Buffer>> free;
};

StepTensors::StepTensors(const Plan& plan, Rank self, nn::TensorOps& math, nn::DeviceMemory& memory)
    : plan_{plan}, math_{math}, memory_{memory}, pool_{std::make_shared<Pool>()} {
  for (std::size_t c = 0; c < plan.stepped.size(); ++c) {
    const SteppedCollective& stepped = plan.stepped[c];
    const std::vector<Rank>& members = stepped.collective.members;
    const auto place = std::ranges::lower_bound(members, self);
    if (place == members.end() || *place != self) continue;
    mine_[c];
    const auto own = static_cast<std::int32_t>(place - members.begin());
    for (std::uint32_t m = 0; m < stepped.sends.size(); ++m) {
      if (stepped.steps->messages[m].from == own) message_of_[stepped.sends[m]] = {c, m};
      if (stepped.steps->messages[m].to == own) message_of_[stepped.receives[m]] = {c, m};
    }
  }
}

void StepTensors::set_numbers(std::size_t collective, nn::ArrayView numbers) {
  mine_.at(collective).numbers = numbers;
}

void StepTensors::begin_iteration() {
  for (auto& [number, mine] : mine_) mine.to_add.clear();
}

/// As the shards of a collective are of its bytes: the first ones have one more.
std::vector<StepTensors::Stretch> StepTensors::stretches_of(MessageRef ref) const {
  const plan::CollectiveSteps& steps = *plan_.stepped[ref.collective].steps;
  const auto cut = [](std::size_t all, std::size_t parts, std::size_t part) {
    return all / parts * part + std::min(part, all % parts);
  };
  const std::size_t all = mine_.at(ref.collective).numbers.count;
  const auto members = to_size(steps.members);
  const plan::StepMessage& step = message(ref);
  std::vector<Stretch> stretches;
  for (const plan::ItemRange& range : steps.ranges_of(step)) {
    for (std::size_t item = range.first; item < range.end(); ++item) {
      const std::size_t first = cut(all, members, item);
      const std::size_t size = cut(all, members, item + 1) - first;
      const std::size_t from = cut(size, to_size(steps.pieces), at(step.piece));
      const std::size_t to = cut(size, to_size(steps.pieces), at(step.piece) + 1);
      if (to > from) stretches.push_back({first + from, to - from});
    }
  }
  return stretches;
}

engine::Payload StepTensors::take_room(MessageRef ref) {
  std::size_t count = 0;
  for (const Stretch& stretch : stretches_of(ref)) count += stretch.count;
  const NumberType type = mine_.at(ref.collective).numbers.type;
  std::shared_ptr<nn::Buffer> owner;
  const std::scoped_lock lock{pool_->mutex};
  auto& free = pool_->free[{count, type}];
  nn::Buffer buffer;
  if (free.empty()) {
    buffer = memory_.take(
        std::max<std::size_t>(1, count), type,
        fmt::format("a message of a collective of chunk {}", plan_.stepped[ref.collective].chunk));
    math_.finish();  // others use it next, on streams of their own
  } else {
    buffer = std::move(free.back());
    free.pop_back();
  }
  const auto give_back = [pool = pool_, key = std::pair{count, type}](nn::Buffer* used) {
    const std::scoped_lock again{pool->mutex};
    pool->free[key].push_back(std::move(*used));
    delete used;
  };
  owner = {new nn::Buffer{std::move(buffer)}, give_back};
  return {{owner->view().data, count * bytes_of(type)}, owner};
}

nn::ArrayView StepTensors::view_of(MessageRef ref, const engine::Payload& payload) const {
  const NumberType type = mine_.at(ref.collective).numbers.type;
  return {payload.bytes.data(), payload.bytes.size() / bytes_of(type), type};
}

engine::Payload StepTensors::make(OpId send) {
  const MessageRef ref = message_of_.at(send);
  Mine& mine = mine_.at(ref.collective);
  for (const std::uint32_t before : plan_.stepped[ref.collective].steps->after_of(message(ref))) {
    const auto found = mine.to_add.find(before);
    if (found == mine.to_add.end()) continue;
    put({ref.collective, before}, found->second);
    mine.to_add.erase(found);
  }
  engine::Payload payload = take_room(ref);
  const nn::ArrayView room = view_of(ref, payload);
  std::size_t filled = 0;
  for (const Stretch& stretch : stretches_of(ref)) {
    math_.copy(mine.numbers.part(stretch.first, stretch.count), room.part(filled, stretch.count));
    filled += stretch.count;
  }
  math_.finish();
  return payload;
}

engine::Payload StepTensors::room(OpId recv) { return take_room(message_of_.at(recv)); }

void StepTensors::deliver(OpId recv, engine::Payload payload) {
  const MessageRef ref = message_of_.at(recv);
  if (message(ref).adds) {
    mine_.at(ref.collective).to_add.emplace(ref.message, std::move(payload));
    return;
  }
  put(ref, payload);
  math_.finish();
}

void StepTensors::put(MessageRef ref, const engine::Payload& payload) {
  const nn::ArrayView from = view_of(ref, payload);
  const nn::ArrayView& numbers = mine_.at(ref.collective).numbers;
  std::size_t taken = 0;
  for (const Stretch& stretch : stretches_of(ref)) {
    const nn::ArrayView own = numbers.part(stretch.first, stretch.count);
    const nn::ArrayView theirs = from.part(taken, stretch.count);
    if (message(ref).adds) {
      math_.add(own, theirs, own);
    } else {
      math_.copy(theirs, own);
    }
    taken += stretch.count;
  }
}

void StepTensors::corrupt(OpId send, const engine::Payload& payload) {
  const nn::ArrayView view = view_of(message_of_.at(send), payload);
  if (view.count == 0) return;
  std::vector<float> numbers(view.count);
  math_.copy_out(view, numbers);
  numbers.back() += 1 + std::abs(numbers.back());
  math_.copy_in(numbers, view);
  math_.finish();
}

void StepTensors::finish() {
  for (const auto& [number, mine] : mine_) finish(number);
}

void StepTensors::finish(std::size_t collective) {
  Mine& mine = mine_.at(collective);
  for (const auto& [message, payload] : mine.to_add) put({collective, message}, payload);
  math_.finish();
  mine.to_add.clear();
}

}  // namespace longhaul::training
