#include "integration/training/played_ranks.hpp"

#include <algorithm>
#include <cstring>

#include "base/random.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "plan/lowering/lower.hpp"
#include "scenario/model_costs.hpp"
#include "training/model_layout.hpp"

namespace longhaul::testing {

Scenario tiny_scenario(int stages, int microbatches, int layers) {
  Scenario scenario = uniform_scenario(stages, microbatches);
  if (stages > 1) scenario = spread(scenario, 2, Duration{50}, Duration{50});
  Model model;
  model.name = "tiny";
  model.layers = layers;
  model.hidden = 16;
  model.intermediate = 24;
  model.heads = 2;
  model.kv_heads = 1;
  model.vocabulary = 16;
  model.sequence_length = 6;
  model.microbatch_size = 2;
  scenario.model = model;
  scenario.layers = scenario::layers_of_stages(model, stages);
  return scenario;
}

PlayedRanks::PlayedRanks(const Schedule& schedule, const Scenario& scenario,
                         const nn::OptimizerOptions& optimizer, std::uint64_t order_seed)
    : schedule_{schedule},
      scenario_{scenario},
      plan_{plan::lower(schedule_, scenario_, Arrangement::decoupled)},
      order_seed_{order_seed} {
  model_.shape = training::model_shape(scenario);
  model_.seed = 7;
  model_.optimizer = optimizer;
  model_.text = nn::SyntheticText{model_.shape, 3};
  std::vector<std::string> told;
  for (std::size_t i = 0; i < plan_.ranks.size(); ++i) {
    PlayedRank rank;
    const Rank self{static_cast<std::int32_t>(i)};
    rank.math = nn::make_cpu_math();
    rank.memory = std::make_unique<nn::DeviceMemory>(*rank.math, 0);
    rank.work = std::make_unique<training::LayerWork>(plan_, schedule_, scenario_, self, *rank.math,
                                                      *rank.memory, model_);
    rank.data_plane = std::make_unique<training::TensorDataPlane>(plan_, self, *rank.work,
                                                                  *rank.math, *rank.memory);
    rank.forwards = std::make_unique<engine::RelayTable>(plan_, self);
    told.push_back(training::ParameterMap::to_text(rank.work->stages()));
    ranks_.push_back(std::move(rank));
  }
  map_ = training::ParameterMap::read(told);
  check_.emplace(
      std::make_unique<training::WholeModel>(
          nn::make_cpu_math(), model_, scenario.parallel.microbatches, scenario.parallel.replicas),
      nullptr);
}

bool PlayedRanks::is_ready(OpId id) const {
  return std::ranges::all_of(plan_.after_of(id), [&](OpId before) { return done_[index(before)]; });
}

void PlayedRanks::iterate(int iteration) {
  for (PlayedRank& rank : ranks_) {
    rank.work->begin_iteration(iteration);
    rank.data_plane->begin_iteration(0, iteration);
  }
  done_.assign(plan_.ops.size(), false);
  std::vector<std::size_t> lanes;
  std::vector<std::uint32_t> next(plan_.lanes.size());
  for (std::size_t i = 0; i < plan_.lanes.size(); ++i) lanes.push_back(i);
  Random random{derived_seed(order_seed_, static_cast<std::uint64_t>(iteration), 0)};
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = lanes.size(); i > 1; --i)
      std::swap(lanes[i - 1],
                lanes[static_cast<std::size_t>(random.between(0, static_cast<int>(i) - 1))]);
    for (const std::size_t i : lanes) {
      const Lane& lane = plan_.lanes[i];
      if (next[i] == lane.count) continue;
      const OpId id{static_cast<std::uint32_t>(index(lane.first)) + next[i]};
      const bool was_done = done_[index(id)];  // a collective, by another member
      if (!was_done && !(is_ready(id) && try_run(id))) continue;
      done_[index(id)] = moved = true;
      ++next[i];
    }
  }
  LONGHAUL_ASSERT(std::ranges::all_of(done_, [](bool done) { return done; }), "it is stuck");
  for (PlayedRank& rank : ranks_) {
    LONGHAUL_ASSERT(rank.data_plane->end_iteration().empty(), "a payload is wrong after all");
    rank.work->end_iteration();
  }
}

bool PlayedRanks::try_run(OpId id) {
  PlayedRank& rank = rank_of(id);
  switch (plan_.op(id).kind) {
    case OpKind::compute:
      rank.work->run(id);
      rank.work->ended(id);
      return true;
    case OpKind::send:
      on_the_way_[id] = rank.forwards->recv_before(id) == kNone<OpId>
                            ? rank.data_plane->make(id)
                            : std::exchange(rank.kept[id], {});
      return true;
    case OpKind::recv: return receive(id);
    case OpKind::collective: return meet(id);
  }
  return false;
}

bool PlayedRanks::receive(OpId recv) {
  OpId send{plan_.op(recv).match};
  if (swapped_ && (send == swapped_->first || send == swapped_->second)) {
    const auto is_there = [&](OpId id) { return done_[index(id)]; };
    if (!is_there(swapped_->first) || !is_there(swapped_->second)) return false;
    send = send == swapped_->first ? swapped_->second : swapped_->first;
  }
  const auto found = on_the_way_.find(send);
  if (found == on_the_way_.end()) return false;
  PlayedRank& rank = rank_of(recv);
  engine::Payload room = rank.data_plane->room(recv);
  LONGHAUL_ASSERT(room.bytes.size() == found->second.bytes.size(), "{} bytes into {}",
                  found->second.bytes.size(), room.bytes.size());
  std::ranges::copy(found->second.bytes, room.bytes.begin());
  on_the_way_.erase(found);
  engine::PayloadId id;
  LONGHAUL_ASSERT(rank.data_plane->check(recv, room.bytes, id) == engine::Payloads::Verdict::right,
                  "op {}", index(recv));
  const OpId onward = rank.forwards->send_after(recv);
  if (onward == kNone<OpId>) {
    rank.data_plane->deliver(recv, std::move(room));
  } else {
    rank.kept[onward] = std::move(room);
  }
  return true;
}

/// The last member to come does it for all.
bool PlayedRanks::meet(OpId collective) {
  const std::vector<OpId>& members = plan_.collectives[plan_.op(collective).match];
  if (std::ranges::find(waiting_, collective) == waiting_.end()) waiting_.push_back(collective);
  const auto is_here = [&](OpId id) { return std::ranges::find(waiting_, id) != waiting_.end(); };
  if (!std::ranges::all_of(members, is_here)) return false;
  std::vector<comm::Exchange> exchanges;
  for (const OpId member : members) {
    std::erase(waiting_, member);
    exchanges.push_back(rank_of(member).data_plane->exchange(member));
  }
  std::vector<float> all;
  for (const comm::Exchange& each : exchanges) {
    std::vector<float> mine(each.mine.size() / sizeof(float));
    std::memcpy(mine.data(), each.mine.data(), each.mine.size());
    if (facts_of(plan_.op(collective).collective).merging == Merging::side_by_side) {
      all.insert(all.end(), mine.begin(), mine.end());
    } else {
      all.resize(mine.size());
      std::ranges::transform(all, mine, all.begin(), std::plus{});
    }
  }
  const bool scatters = facts_of(plan_.op(collective).collective).gets == Portion::share;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t size = exchanges[i].result.size();
    std::memcpy(exchanges[i].result.data(), all.data() + (scatters ? i * size / sizeof(float) : 0),
                size);
    LONGHAUL_ASSERT(rank_of(members[i]).data_plane->exchanged(members[i]), "member {}", i);
    done_[index(members[i])] = true;
  }
  return true;
}

std::vector<std::vector<float>> PlayedRanks::numbers(nn::ArrayView (training::StageShard::*what)()
                                                         const) {
  std::vector<std::vector<float>> all;
  for (PlayedRank& rank : ranks_) {
    std::vector<float>& mine = all.emplace_back();
    for (const training::StageShard& stage : rank.work->stages()) {
      const nn::ArrayView view = (stage.*what)();
      std::vector<float> part(view.count);
      rank.math->copy_out(view, part);
      mine.insert(mine.end(), part.begin(), part.end());
    }
  }
  return all;
}

std::vector<training::WrongTensor> PlayedRanks::step_and_check(int iteration) {
  training::IterationNumbers found{iteration, 0, numbers(&training::StageShard::gradient), {}};
  ++steps_;
  for (PlayedRank& rank : ranks_) {
    found.loss += rank.work->loss();
    for (training::StageShard& stage : rank.work->stages()) stage.step(steps_);
  }
  found.masters = numbers(&training::StageShard::master);
  return check_->check(map_, found, steps_);
}

std::vector<OpId> PlayedRanks::sends(Rank from, Rank to) const {
  std::vector<OpId> found;
  for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    if (plan_.op(id).kind == OpKind::send && plan_.rank_of(id) == from && plan_.op(id).peer == to)
      found.push_back(id);
  }
  return found;
}

}  // namespace longhaul::testing
