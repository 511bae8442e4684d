#include "integration/training/played_operators.hpp"

#include <algorithm>
#include <cstring>

#include "base/random.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "training/model_layout.hpp"

namespace longhaul::testing {
namespace {

std::vector<float> numbers_of(nn::TensorOps& math, nn::ArrayView view) {
  std::vector<float> numbers(view.count);
  math.copy_out(view, numbers);
  return numbers;
}

}  // namespace

PlayedOperators::PlayedOperators(const std::string& overlap, const Schedule& schedule,
                                 const Scenario& scenario, std::uint64_t order_seed,
                                 const nn::OptimizerOptions& optimizer)
    : iteration_plan_{collective::overlapped(*collective::parse_overlaps(overlap).front(), schedule,
                                             scenario)
                          .or_throw()},
      lowered_{collective::lower_iteration(iteration_plan_).or_throw()},
      order_seed_{order_seed} {
  training::TrainingModel model;
  model.shape = training::model_shape(scenario);
  model.seed = 7;
  model.optimizer = optimizer;
  model.text = nn::SyntheticText{model.shape, 3};
  std::vector<training::ParameterExtent> tensors;
  for (std::size_t i = 0; i < plan().ranks.size(); ++i) {
    PlayedRank rank;
    rank.math = nn::make_cpu_math();
    rank.step_math = nn::make_cpu_math();
    rank.memory = std::make_unique<nn::DeviceMemory>(*rank.math, 0);
    rank.step_memory = std::make_unique<nn::DeviceMemory>(*rank.step_math, 0);
    rank.work = std::make_unique<training::OperatorWork>(
        iteration_plan_, lowered_, Rank{static_cast<std::int32_t>(i)}, *rank.math, *rank.memory,
        *rank.step_math, *rank.step_memory, model);
    rank.data_plane = std::make_unique<training::OperatorDataPlane>(plan(), *rank.work);
    const auto& held = rank.work->weights().parameters();
    tensors.insert(tensors.end(), held.begin(), held.end());
    ranks_.push_back(std::move(rank));
  }
  check_.emplace(
      std::make_unique<training::WholeModel>(
          nn::make_cpu_math(), model, scenario.parallel.microbatches, scenario.parallel.replicas),
      std::move(tensors));
}

void PlayedOperators::iterate(int iteration) {
  for (PlayedRank& rank : ranks_) {
    rank.work->begin_iteration(iteration);
    rank.data_plane->begin_iteration(0, iteration);
  }
  done_.assign(plan().ops.size(), false);
  std::vector<std::size_t> lanes;
  std::vector<std::uint32_t> next(plan().lanes.size());
  for (std::size_t i = 0; i < plan().lanes.size(); ++i) lanes.push_back(i);
  Random random{derived_seed(order_seed_, static_cast<std::uint64_t>(iteration), 0)};
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = lanes.size(); i > 1; --i)
      std::swap(lanes[i - 1], lanes[to_size(random.between(0, static_cast<int>(i) - 1))]);
    for (const std::size_t i : lanes) {
      const Lane& lane = plan().lanes[i];
      if (next[i] == lane.count) continue;
      const OpId id{static_cast<std::uint32_t>(index(lane.first)) + next[i]};
      const auto is_done = [&](OpId before) { return done_[index(before)]; };
      if (!std::ranges::all_of(plan().after_of(id), is_done) || !try_run(id)) continue;
      done_[index(id)] = moved = true;
      ++next[i];
    }
  }
  LONGHAUL_ASSERT(std::ranges::all_of(done_, [](bool done) { return done; }), "it is stuck");
  for (PlayedRank& rank : ranks_) {
    LONGHAUL_ASSERT(rank.data_plane->end_iteration().empty(), "a payload is wrong after all");
    rank.work->end_iteration();
  }
  sum_over_tensor_ranks();
}

bool PlayedOperators::try_run(OpId id) {
  switch (plan().op(id).kind) {
    case OpKind::compute:
      rank_of(id).work->run(id);
      rank_of(id).work->ended(id);
      return true;
    case OpKind::send: send(id); return true;
    case OpKind::recv: return receive(id);
    case OpKind::collective: break;
  }
  return false;
}

void PlayedOperators::send(OpId id) {
  engine::Payload payload = rank_of(id).data_plane->make(id);
  const Op& op = plan().op(id);
  if (change_ && is_step(op)) {
    const SteppedCollective& stepped = plan().stepped[stepped_of(op)];
    const auto message = std::ranges::find(stepped.sends, id) - stepped.sends.begin();
    std::vector<float> numbers(payload.bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), payload.bytes.data(), payload.bytes.size());
    const std::vector<float> before = std::exchange(sent_[id], numbers);
    change_(stepped.steps->messages[to_size(message)], id, numbers, before);
    std::memcpy(payload.bytes.data(), numbers.data(), payload.bytes.size());
  }
  on_the_way_[id] = std::move(payload);
}

bool PlayedOperators::receive(OpId recv) {
  const auto found = on_the_way_.find(OpId{plan().op(recv).match});
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
  rank.data_plane->deliver(recv, std::move(room));
  return true;
}

/// Weights that they hold whole, where each has the gradients of its tokens.
void PlayedOperators::sum_over_tensor_ranks() {
  if (!ranks_.front().work->tensor_place().sequence) return;
  const int tensor = iteration_plan_.scenario->parallel.tensor;
  std::map<std::pair<ReplicaId, DeviceId>, std::vector<PlayedRank*>> together;
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    together[{plan().ranks[i].replica, plan().ranks[i].device}].push_back(&ranks_[i]);
  for (const auto& [place, members] : together) {
    LONGHAUL_ASSERT(std::cmp_equal(members.size(), tensor), "{} tensor ranks", members.size());
    for (const training::ShardRange& range :
         members.front()->work->weights().whole_on_tensor_ranks()) {
      std::vector<float> sum(range.count);
      for (PlayedRank* each : members) {
        const std::vector<float> own = numbers_of(
            *each->math, each->work->weights().gradients().part(range.first, range.count));
        std::ranges::transform(sum, own, sum.begin(), std::plus{});
      }
      for (PlayedRank* each : members)
        each->math->copy_in(sum, each->work->weights().gradients().part(range.first, range.count));
    }
  }
}

/// Without sequence parallelism the tensor ranks compute one loss.
double PlayedOperators::loss() {
  double sum = 0;
  for (PlayedRank& rank : ranks_)
    if (rank.work->tensor_place().sequence || rank.work->tensor_place().place == 0)
      sum += rank.work->loss();
  return sum;
}

std::vector<training::WrongTensor> PlayedOperators::step_and_check(int iteration) {
  ++steps_;
  std::vector<training::RankNumbers> found;
  for (PlayedRank& rank : ranks_) {
    training::WeightBundles& weights = rank.work->weights();
    training::RankNumbers& own = found.emplace_back();
    own.held = weights.held();
    own.gradients = numbers_of(*rank.math, weights.gradients());
    weights.step(steps_);
    own.masters = numbers_of(*rank.math, weights.masters());
  }
  return check_->check(iteration, loss(), found, steps_);
}

}  // namespace longhaul::testing
