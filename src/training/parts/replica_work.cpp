#include "training/parts/replica_work.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "compress/sparse_set.hpp"
#include "compress/wire/dense.hpp"
#include "training/model_layout.hpp"
#include "training/parts/set_envelope.hpp"

namespace longhaul::training {

ReplicaWork::ReplicaWork(const Plan& plan, const Schedule& schedule, const Scenario& scenario,
                         Rank self, nn::TensorOps& math, nn::DeviceMemory& memory,
                         Settings settings)
    : plan_{plan},
      self_{self},
      math_{math},
      settings_{std::move(settings)},
      staleness_{scenario.train.staleness},
      late_{scenario.train.buffers == 1 ? scenario.train.staleness : 0},
      ops_{plan, schedule, scenario, self, settings_.exchanges},
      blocks_{plan, schedule, scenario, self, math, memory, settings_.model} {
  if (settings_.local) require_turns(schedule);
  const std::vector<nn::LayerRange> layers = layers_of_stages(schedule, scenario);
  for (const PlannedPart& planned : ops_.parts()) {
    const plan::TrainedPart& part = planned.trained;
    make_part(planned,
              tensors_of_part(settings_.model.shape, layers[at(schedule.stage_of(part.chunk))],
                              part.part, part.parts));
  }
}

void ReplicaWork::require_turns(const Schedule& schedule) const {
  const RankInfo& place = plan_.ranks[index(self_)];
  MicrobatchId now{0};
  for (const Block& block : schedule.row(place.replica, place.device)) {
    if (block.microbatch < now)
      fail(
          "schedule {} begins microbatch {} before {} is over (a local step comes between them). "
          "Use --schedule stella.",
          schedule.name, number(now), number(block.microbatch));
    now = block.microbatch;
  }
}

void ReplicaWork::make_part(const PlannedPart& planned, const nn::ParameterPlaces& tensors) {
  auto part = std::make_unique<Part>();
  part->chunk = blocks_.chunks().at(planned.trained.chunk).get();
  const nn::NumberRange range =
      part->chunk->weights_of({planned.trained.part, planned.trained.parts});
  LONGHAUL_ASSERT(tensors.numbers == range.count, "{} and {}", tensors.numbers, range.count);
  part->in_chunk = {range.first, range.count};
  std::size_t before = 0;  // numbers of the rank's chunks before this one
  for (const auto& [number, chunk] : blocks_.chunks()) {
    if (number == planned.trained.chunk) break;
    before += chunk->all_weights().count;
  }
  ranges_.push_back({before + range.first, range.count});
  if (planned.leads)
    part->method = settings_.make_method({static_cast<std::int64_t>(range.count), ops_.sets(),
                                          ops_.sites(), staleness_, planned.trained.number,
                                          settings_.accounts, tensors.places});
  part->weights.resize(range.count);
  math_.copy_out(part->chunk->all_masters().part(range.first, range.count), part->weights);
  if (settings_.local) {
    part->local.emplace(*settings_.local, static_cast<std::int64_t>(range.count));
    part->local->start(part->weights);
  }
  part->versions.push_back({-1, std::make_shared<const std::vector<float>>(part->weights)});
  parts_.push_back(std::move(part));
}

void ReplicaWork::run(OpId op, int iteration, int version) {
  if (const PartOps::TaskOf* const task = ops_.task_of(op))
    run_task(*task, iteration);
  else
    run_block(op, iteration, version);
}

void ReplicaWork::run_block(OpId op, int iteration, int version) {
  if (op == ops_.first_block()) begin_iteration(iteration);
  const std::vector<PlannedPart>& planned = ops_.parts();
  for (std::size_t p = 0; p < planned.size(); ++p)
    if (planned[p].first_forward == op) place_weights(*parts_[p], version);
  blocks_.run(op, iteration);
  math_.finish();
  blocks_.tensors().settle(op);
  for (std::size_t p = 0; p < planned.size(); ++p) {
    if (parts_[p]->local && makes_gradients(op, planned[p])) step_locally(*parts_[p]);
    if (planned[p].last_gradient == op) take_gradient(p, iteration);
  }
  if (op == ops_.last_block()) losses_.push_back(blocks_.loss() * settings_.loss_share);
}

void ReplicaWork::change_from(int iteration, const Change& change) {
  for (const auto& part : parts_)
    if (part->method) part->method->keep_from(iteration, change.keep);
  const std::lock_guard lock{mutex_};
  changes_[iteration] = change;
}

void ReplicaWork::begin_iteration(int iteration) {
  {
    const std::lock_guard lock{mutex_};
    const auto next = changes_.upper_bound(iteration);
    if (next != changes_.begin()) {
      const Change& change = std::prev(next)->second;
      blocks_.set_batch(change.batch, change.tokens);
    }
  }
  blocks_.begin_iteration();
}

/// Older versions are not asked for again.
void ReplicaWork::place_weights(Part& part, int version) {
  std::shared_ptr<const std::vector<float>> weights;
  {
    const std::lock_guard lock{mutex_};
    while (part.versions.front().iteration < version) part.versions.pop_front();
    LONGHAUL_ASSERT(part.versions.front().iteration == version, "version {} is not in place",
                    version);
    weights = part.versions.front().weights;
  }
  if (!part.local) return put_weights(part, *weights);
  if (!settings_.mixing)
    part.local->start(*weights);
  else if (version >= 0)  // the first weights are there
    part.local->meet(*weights, *settings_.mixing);
  put_weights(part, part.local->weights());
}

void ReplicaWork::put_weights(Part& part, const std::vector<float>& weights) {
  const auto [first, count] = part.in_chunk;
  math_.copy_in(weights, part.chunk->all_masters().part(first, count));
  if (part.chunk->all_masters().data != part.chunk->all_weights().data)
    math_.copy(part.chunk->all_masters().part(first, count),
               part.chunk->all_weights().part(first, count));
}

bool ReplicaWork::makes_gradients(OpId op, const PlannedPart& planned) const {
  const Block block = plan_.op(op).block();
  return (block.kind == BlockKind::B || block.kind == BlockKind::W) &&
         block.chunk == planned.trained.chunk &&
         (planned.trained.parts == 1 || block.part == planned.trained.part);
}

std::vector<float> ReplicaWork::gradient_of(const Part& part) {
  std::vector<float> gradient(part.in_chunk.count);
  math_.copy_out(part.chunk->all_gradients().part(part.in_chunk.first, part.in_chunk.count),
                 gradient);
  return gradient;
}

/// Blocks of the next microbatch meet the weights after it, and gradients of their own.
void ReplicaWork::step_locally(Part& part) {
  part.local->step(gradient_of(part));
  put_weights(part, part.local->weights());
  math_.zero(part.chunk->all_gradients().part(part.in_chunk.first, part.in_chunk.count));
  math_.finish();
}

void ReplicaWork::take_gradient(std::size_t number, int iteration) {
  Part& part = *parts_[number];
  std::vector<float> gradient = part.local ? part.local->outer_gradient() : gradient_of(part);
  if (part.local)
    for (float& each : gradient) each *= settings_.outer_weight;
  const PlannedPart& planned = ops_.parts()[number];
  if (planned.is_gathered()) look_at(number, iteration, gradient);
  if (!planned.leads) {
    Bytes bytes =
        sealed_set(number, iteration, compress::encode_dense(gradient, compress::DenseFormat::f32));
    const std::lock_guard lock{mutex_};
    return flight(number, iteration).own.push_back(std::move(bytes));
  }
  {
    const std::lock_guard lock{mutex_};
    flight(number, iteration).gradient = std::move(gradient);
  }
  if (!planned.has_compress && planned.gradients.empty()) make_own_set(number, iteration);
}

void ReplicaWork::run_task(const PartOps::TaskOf& task, int iteration) {
  const std::size_t part = task.part;
  const PlannedPart& planned = ops_.parts()[part];
  switch (task.task) {
    case PartTask::copy_out: {  // into memory of the host
      const std::lock_guard lock{mutex_};
      Flight& here = flight(part, iteration);
      here.gradient = std::vector<float>(here.gradient);
      return;
    }
    case PartTask::gather: return gather(part, iteration);
    case PartTask::compress: return make_own_set(part, iteration);
    case PartTask::choose: return choose(part, iteration, task.round);
    case PartTask::answer: return answer(part, iteration, task.round);
    case PartTask::merge: return merge(part, iteration);
    case PartTask::optimize:
      if (!planned.has_merge) merge(part, iteration);
      return optimize(part, iteration);
    case PartTask::copy_in: return publish(part, iteration);
  }
}

ReplicaWork::Flight& ReplicaWork::flight(std::size_t part, int iteration) {
  return parts_[part]->flights[iteration];
}

std::string ReplicaWork::name_of(std::size_t part, int iteration, Rank from) const {
  return fmt::format("rank {}, part {}, iteration {}", index(from),
                     ops_.parts()[part].trained.number, iteration);
}

/// Where a run goes on without them, gradients that are not finite count as zeros.
void ReplicaWork::forget_bad(std::vector<float>& gradient) {
  if (!settings_.survives_bad_gradients ||
      std::ranges::all_of(gradient, [](float number) { return std::isfinite(number); }))
    return;
  has_diverged_ = true;
  std::ranges::fill(gradient, 0.0F);
}

std::vector<std::byte> ReplicaWork::own_set(Part& part, int iteration,
                                            std::vector<float>& gradient) {
  forget_bad(gradient);
  return part.method->own_set(iteration, gradient);
}

void ReplicaWork::name_bad(std::size_t number, int iteration, std::size_t index) const {
  const Part& part = *parts_[number];
  const std::size_t place = part.in_chunk.first + index;
  std::string tensor = "between two tensors";
  for (const nn::Parameter& each : part.chunk->parameters()) {
    const auto first =
        static_cast<std::size_t>(each.gradient.data - part.chunk->all_gradients().data) /
        sizeof(float);
    if (place >= first && place < first + each.count)
      tensor = fmt::format("{}, number {}", each.name, place - first);
  }
  throw BadGradient{fmt::format("{}: the gradient of {} is not finite. Lower the learning rate.",
                                name_of(number, iteration, self_), tensor),
                    ExitCode::run_failed};
}

void ReplicaWork::make_own_set(std::size_t number, int iteration) {
  Part& part = *parts_[number];
  std::vector<float> gradient;
  {
    const std::lock_guard lock{mutex_};
    gradient = std::move(flight(number, iteration).gradient);
  }
  part.sets.run(iteration, [&] {
    Bytes set;
    try {
      set = sealed_set(number, iteration, own_set(part, iteration, gradient));
    } catch (const compress::NotFinite& error) {
      name_bad(number, iteration, error.index());
    }
    const std::lock_guard lock{mutex_};
    flight(number, iteration).own.push_back(std::move(set));
  });
}

ReplicaWork::Bytes ReplicaWork::sealed_set(std::size_t part, int iteration,
                                           std::span<const std::byte> set) const {
  return std::make_shared<std::vector<std::byte>>(
      sealed(ops_.parts()[part].trained.number, iteration, set));
}

/// The payloads live as long as their flight, which is not over yet.
std::vector<SetPayload> ReplicaWork::sets_of(std::size_t part, int iteration, int round,
                                             const std::vector<int>& messages, bool of_site) {
  std::vector<SetPayload> sets;
  const std::lock_guard lock{mutex_};
  const Flight& here = flight(part, iteration);
  for (const int message : messages) {
    const Bytes& bytes =
        message >= 0 ? here.received.at(message) : (of_site ? here.of_site : here.own)[at(round)];
    const Rank from = message < 0
                          ? self_
                          : ops_.members()[at(ops_.parts()[part].steps.messages[at(message)].from)];
    sets.push_back({name_of(part, iteration, from), opened(*bytes)});
  }
  return sets;
}

std::vector<SetPayload> ReplicaWork::sets_to_sum(std::size_t part, int iteration, int round) {
  const PlannedPart& planned = ops_.parts()[part];
  return sets_of(part, iteration, round, planned.rounds[at(round)].sum_of,
                 !planned.steps.choices.empty());
}

void ReplicaWork::choose(std::size_t number, int iteration, int round) {
  Part& part = *parts_[number];
  const std::vector<PlannedRound>& rounds = ops_.parts()[number].rounds;
  part.choices.run(static_cast<int>(rounds.size()) * iteration + round, [&] {
    const std::vector<std::byte> chosen = part.method->site_set(
        iteration, sets_of(number, iteration, round, rounds[at(round)].choice_of, false));
    Bytes set = sealed_set(number, iteration, chosen);
    const std::lock_guard lock{mutex_};
    flight(number, iteration).of_site.push_back(std::move(set));
  });
}

void ReplicaWork::answer(std::size_t number, int iteration, int round) {
  Part& part = *parts_[number];
  const auto answers = static_cast<int>(ops_.parts()[number].rounds.size()) - 1;
  part.answers.run(answers * iteration + round - 1, [&] {
    Bytes set =
        sealed_set(number, iteration,
                   part.method->answer(iteration, sets_to_sum(number, iteration, round - 1)));
    const std::lock_guard lock{mutex_};
    flight(number, iteration).own.push_back(std::move(set));
  });
}

void ReplicaWork::merge(std::size_t number, int iteration) {
  const auto last = static_cast<int>(ops_.parts()[number].rounds.size()) - 1;
  parts_[number]->updates.run(2 * iteration, [&] {
    parts_[number]->method->merge(iteration, sets_to_sum(number, iteration, last));
  });
}

void ReplicaWork::optimize(std::size_t number, int iteration) {
  Part& part = *parts_[number];
  part.updates.run(2 * iteration + 1, [&] {
    part.method->step(iteration, part.weights);
    keep(number, iteration);
    auto made = std::make_shared<const std::vector<float>>(part.weights);
    Bytes handed_on;
    if (!ops_.parts()[number].gradients.empty())
      handed_on =
          sealed_set(number, iteration, compress::encode_dense(*made, compress::DenseFormat::f32));
    {
      const std::lock_guard lock{mutex_};
      part.made[iteration] = std::move(made);
      flight(number, iteration).handed_on = std::move(handed_on);
    }
    // In turn: versions stay in order where several workers step.
    if (!ops_.parts()[number].has_copy_in) publish(number, iteration);
    const std::lock_guard lock{mutex_};
    flight(number, iteration).updated = true;
    forget_if_over(part, number, iteration);
  });
}

/// An update is in place for blocks. With one buffer it is that of `late_` iterations ago, if any.
void ReplicaWork::publish(std::size_t number, int iteration) {
  Part& part = *parts_[number];
  const std::lock_guard lock{mutex_};
  if (iteration < late_) {
    part.versions.push_back({iteration, part.versions.back().weights});
    return;
  }
  const auto made = part.made.find(iteration - late_);
  LONGHAUL_ASSERT(made != part.made.end(), "iteration {} has not stepped", iteration - late_);
  part.versions.push_back({iteration, std::move(made->second)});
  part.made.erase(made);
}

void ReplicaWork::forget_if_over(Part& part, std::size_t number, int iteration) {
  const auto here = part.flights.find(iteration);
  if (here->second.updated && here->second.sent == ops_.parts()[number].sends)
    part.flights.erase(here);
}

ReplicaWork::Bytes ReplicaWork::sent_set(std::size_t number, int message, int iteration) {
  const plan::SetMessage& set = ops_.parts()[number].steps.messages[at(message)];
  const std::lock_guard lock{mutex_};
  Flight& here = flight(number, iteration);
  const bool hands_on = set.leg == plan::NodeLeg::weights;
  Bytes bytes = hands_on              ? here.handed_on
                : set.brought_by >= 0 ? here.received.at(set.brought_by)
                                      : (set.of_site ? here.of_site : here.own)[at(set.round)];
  ++here.sent;
  forget_if_over(*parts_[number], number, iteration);
  return bytes;
}

void ReplicaWork::received_set(std::size_t part, int message, int iteration, Bytes payload) {
  if (ops_.parts()[part].steps.messages[at(message)].leg == plan::NodeLeg::weights)
    return take_weights(part, iteration, *payload);
  const std::lock_guard lock{mutex_};
  flight(part, iteration).received[message] = std::move(payload);
}

}  // namespace longhaul::training
