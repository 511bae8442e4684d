#include "training/operators/operator_work.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/block_operators.hpp"
#include "training/model_layout.hpp"
#include "training/operators/check_operators.hpp"

namespace longhaul::training {
namespace {

using collective::Communication;
using collective::CommunicationId;
using collective::Operation;
using collective::OperationId;

TensorPlace place_of(const Scenario& scenario, Rank self) {
  const Parallel& parallel = scenario.parallel;
  return {parallel.tensor, scenario.place_of(self).tensor,
          parallel.tensor > 1 && parallel.sharding.sequence_parallel};
}

std::size_t passing_numbers(const nn::ModelShape& shape, const TensorPlace& place) {
  return shape.boundary() / (place.sequence ? to_size(place.ranks) : 1);
}

bool is_forward(const Operation& operation) {
  return operation.work == BlockKind::F || operation.work == BlockKind::R;
}

}  // namespace

OperatorWork::OperatorWork(const collective::IterationPlan& plan,
                           const collective::LoweredIteration& lowered, Rank self,
                           nn::TensorOps& math, nn::DeviceMemory& memory, nn::TensorOps& step_math,
                           nn::DeviceMemory& step_memory, const TrainingModel& model)
    : plan_{plan},
      lowered_{lowered.plan},
      work_{plan.stages[lowered.plan.ranks[index(self)].device]},
      self_{self},
      first_operation_{static_cast<std::uint32_t>(index(lowered.first_operation[index(self)]))},
      math_{math},
      memory_{memory},
      step_math_{step_math},
      model_{model},
      place_{place_of(*plan.scenario, self)},
      tensors_{math, memory, passing_numbers(model.shape, place_)},
      steps_{lowered.plan, self, step_math, step_memory} {
  check_operators(plan, model_.shape);
  make_chunks();
  make_vectors(lowered);
  weights_ = std::make_unique<WeightBundles>(work_, chunks_, vectors_, math_, memory_, model_);
  for (auto& [id, vector] : vectors_) steps_.set_numbers(vector.collective, vector.numbers.view());
}

void OperatorWork::make_chunks() {
  const auto ranges = schedule::operators_of_chunks(*plan_.schedule, *plan_.scenario);
  const std::span<const Operator> all{*plan_.scenario->operators.all};
  for (const ChunkId id : chunks_on(*plan_.schedule, lowered_.ranks[index(self_)].device))
    chunks_[id] = std::make_unique<OperatorChunk>(math_, memory_, model_.shape,
                                                  all.subspan(ranges[id].first, ranges[id].count),
                                                  place_, plan_.schedule->microbatches);
}

void OperatorWork::make_vectors(const collective::LoweredIteration& lowered) {
  vectors_ = vectors_of(plan_, lowered, self_);
  awaited_.resize(work_.operations.count());
  for (auto& [id, vector] : vectors_) {
    const Communication& each = work_.communications[id];
    by_collective_[vector.collective] = &vector;
    for (const OperationId operation : each.needed_by) awaited_[operation].push_back(&vector);
    if (vector.moves != MovedNumbers::activations) continue;
    vector.numbers = memory_.take(model_.shape.boundary(), NumberType::f32, "a collective");
    if (each.kind != CollectiveKind::all_gather) sum_after_[each.needs.back()] = &vector;
  }
}

void OperatorWork::begin_iteration(int iteration) {
  iteration_ = iteration;
  const double tokens = static_cast<double>(model_.shape.tokens()) *
                        plan_.scenario->parallel.microbatches * plan_.scenario->parallel.replicas;
  for (auto& [id, operators] : chunks_) operators->begin_iteration(static_cast<float>(1 / tokens));
  weights_->begin_iteration();
  steps_.begin_iteration();
  math_.finish();
}

/// What the rank brings, once; its operations that make it have ended, so that nothing waits for
/// the operator that runs now.
void OperatorWork::begin(CommunicationVector& vector) {
  if (std::exchange(vector.is_begun, true)) return;
  for (const CommunicationId before : work_.communications[vector.id].follows)
    if (const auto found = vectors_.find(before); found != vectors_.end()) {
      take(found->second);
      math_.finish();
    }
  if (vector.moves == MovedNumbers::activations)
    fill_activations(vector);
  else
    weights_->fill(vector, step_math_);
}

void OperatorWork::take(CommunicationVector& vector) {
  const std::lock_guard lock{mutex_};
  if (std::exchange(vector.is_taken, true)) return;
  begin(vector);
  steps_.finish(vector.collective);
  if (vector.moves == MovedNumbers::activations)
    take_activations(vector);
  else
    weights_->take(vector, step_math_);
}

/// A sum is of what the operation made that it needs; a gather is for the first that needs it.
void OperatorWork::fill_activations(CommunicationVector& vector) {
  const Communication& each = work_.communications[vector.id];
  const nn::ArrayView numbers = vector.numbers.view();
  if (each.kind != CollectiveKind::all_gather) {
    const Operation& made = work_.operations[each.needs.back()];
    const OperatorTensors& tensors = chunk(made).tensors(made.place, made.microbatch);
    return step_math_.copy((is_forward(made) ? tensors.output : tensors.gradient).view(), numbers);
  }
  const Operation& user = work_.operations[each.needed_by.front()];
  OperatorChunk& operators = chunk(user);
  if (user.work == BlockKind::D) {
    prepare(user);
    math_.finish();
  }
  const nn::ArrayView own = user.work == BlockKind::D
                                ? operators.gradient_after(user.place, user.microbatch)
                                : operators.tensors(user.place - 1, user.microbatch).output.view();
  const ShardRange item = vector.item();
  step_math_.copy(own, numbers.part(item.first, item.count));
}

void OperatorWork::take_activations(const CommunicationVector& vector) {
  const Communication& each = work_.communications[vector.id];
  const bool gathers = each.kind == CollectiveKind::all_gather;
  const Operation& of = work_.operations[gathers ? each.needed_by.front() : each.needs.back()];
  OperatorTensors& tensors = chunk(of).tensors(of.place, of.microbatch);
  nn::Buffer& to = gathers
                       ? (of.work == BlockKind::D ? tensors.gathered_gradient : tensors.gathered)
                       : (is_forward(of) ? tensors.summed : tensors.summed_gradient);
  const ShardRange item = each.kind == CollectiveKind::reduce_scatter
                              ? vector.item()
                              : ShardRange{0, vector.numbers.view().count};
  to = memory_.take(item.count, "what a collective brought");
  math_.copy(vector.numbers.view().part(item.first, item.count), to.view());
}

void OperatorWork::run(OpId block) {
  const OperationId id = work_.order[index(block) - first_operation_];
  const Operation& operation = work_.operations[id];
  // The optimizer steps between iterations; the D of a chunk that is the embedding does nothing.
  if (number(operation.microbatch) < 0 || operation.place < 0) return;
  running_ = block;
  for (CommunicationVector* vector : awaited_[id]) take(*vector);
  {
    const std::lock_guard lock{mutex_};
    prepare(operation);
  }
  compute(id);
}

nn::MicrobatchText OperatorWork::text_of(MicrobatchId microbatch) const {
  return model_.text(iteration_, lowered_.ranks[index(self_)].replica, microbatch);
}

/// What comes into the chunk from outside.
void OperatorWork::prepare(const Operation& operation) {
  OperatorChunk& operators = chunk(operation);
  const MicrobatchId microbatch = operation.microbatch;
  const std::string_view name = operators.name(operation.place);
  if (is_forward(operation)) {
    if (name == "embedding") operators.set_tokens(microbatch, text_of(microbatch).tokens);
    if (name == "loss") operators.set_targets(microbatch, text_of(microbatch).targets);
    if (operation.place == 0 && operation.work == BlockKind::F &&
        !plan_.schedule->is_first(operation.chunk))
      operators.set_input(microbatch, handed_over({false, previous(operation.chunk), microbatch}));
    return;
  }
  const bool takes_from_after =
      operation.place + 1 == operators.operators() && !plan_.schedule->is_last(operation.chunk);
  if (takes_from_after && !operators.has_gradient(microbatch))
    operators.set_gradient(microbatch, handed_over({true, next(operation.chunk), microbatch}));
}

/// By the chunk of that key: on this rank, or in a message.
nn::Buffer OperatorWork::handed_over(const TensorKey& key) {
  const auto here = chunks_.find(key.chunk);
  if (here == chunks_.end()) {
    nn::Buffer taken = tensors_.take(key, running_, "what another stage sent");
    math_.finish();
    tensors_.settle(running_);
    return taken;
  }
  return key.gradient ? here->second->gradient(key.microbatch)
                      : output_of(key.chunk, key.microbatch);
}

nn::Buffer OperatorWork::output_of(ChunkId of, MicrobatchId microbatch) {
  OperatorChunk& operators = *chunks_.at(of);
  for (const auto& [id, vector] : sum_after_) {
    const Operation& made = work_.operations[id];
    if (made.work == BlockKind::F && made.chunk == of && made.microbatch == microbatch &&
        made.place + 1 == operators.operators())
      take(*vector);
  }
  return operators.output(microbatch);
}

void OperatorWork::compute(OperationId id) {
  const Operation& operation = work_.operations[id];
  OperatorChunk& operators = chunk(operation);
  const int place = operation.place;
  switch (operation.work) {
    case BlockKind::F:
      return operators.forward(place, operation.microbatch, OperatorChunk::Pass::first);
    case BlockKind::R:
      return operators.forward(place, operation.microbatch, OperatorChunk::Pass::again);
    case BlockKind::W:
      return operators.weight_gradient(place, operation.microbatch, weights_->gradient_of(id));
    case BlockKind::B:
    case BlockKind::D: break;
  }
  const bool has_own = operators.name(place).ends_with("norm");
  operators.input_gradient(place, operation.microbatch,
                           has_own ? weights_->gradient_of(id) : nn::ArrayView{});
}

CommunicationVector& OperatorWork::vector_of(OpId message) {
  return *by_collective_.at(stepped_of(lowered_.op(message)));
}

engine::Payload OperatorWork::make(OpId send) {
  const std::lock_guard lock{mutex_};
  const Op& op = lowered_.op(send);
  if (is_step(op)) {
    begin(vector_of(send));
    return steps_.make(send);
  }
  const TensorKey key = tensor_key(op);
  if (op.piece == 0) {
    tensors_.put(key, key.gradient ? chunks_.at(key.chunk)->gradient(key.microbatch)
                                   : output_of(key.chunk, key.microbatch));
    math_.finish();
  }
  return tensors_.piece_of(key, op.piece, op.pieces);
}

nn::ArrayView OperatorWork::view_of(OpId message, const engine::Payload& payload) const {
  const NumberType type = is_step(lowered_.op(message)) ? NumberType::f32 : tensors_.type();
  return {payload.bytes.data(), payload.bytes.size() / bytes_of(type), type};
}

engine::Payload OperatorWork::room(OpId recv) {
  const std::lock_guard lock{mutex_};
  const Op& op = lowered_.op(recv);
  if (is_step(op)) return steps_.room(recv);
  return tensors_.room_in(tensor_key(op), op.piece, op.pieces, "what another stage sent");
}

void OperatorWork::deliver(OpId recv, engine::Payload payload) {
  const std::lock_guard lock{mutex_};
  const Op& op = lowered_.op(recv);
  if (!is_step(op)) return tensors_.arrived(tensor_key(op));
  begin(vector_of(recv));
  steps_.deliver(recv, std::move(payload));
}

void OperatorWork::end_iteration() {
  for (auto& [id, vector] : vectors_) take(vector);
  weights_->end_iteration();
}

double OperatorWork::loss() {
  double sum = 0;
  for (const auto& [id, operators] : chunks_) sum += operators->loss();
  return sum;
}

}  // namespace longhaul::training
