#include "harness/prefill/stretch_outcome.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "base/index.hpp"

namespace longhaul::harness {
namespace {

/// The end of the last op of training, its messages included.
void add_training(const Plan& training, const OpTimes& times, const std::vector<OpId>& ids,
                  StretchOutcome& outcome) {
  for (std::size_t i = 0; i < training.ops.size(); ++i) {
    const OpTime& time = times[ids.empty() ? i : index(ids[i])];
    outcome.wall = std::max(outcome.wall, time.end);
    if (training.ops[i].kind == OpKind::compute) outcome.training += time.end - time.start;
  }
}

/// Blocks that waited for a prefill.
void add_delays(const PlannedStretches& planned, const FilledStretch& stretch, const OpTimes& times,
                StretchOutcome& outcome) {
  std::vector<bool> is_prefill(times.size(), false);
  for (const prefill::FilledStage& stage : stretch.filled.stages)
    for (std::size_t op = index(stage.first); op <= index(stage.op); ++op) is_prefill[op] = true;
  for (std::size_t i = 0; i < planned.training.ops.size(); ++i) {
    const OpTime& time = times[index(stretch.filled.training[i])];
    if (planned.training.ops[i].kind != OpKind::compute || time.bound_by == kNone<OpId> ||
        !is_prefill[index(time.bound_by)])
      continue;
    ++outcome.blocks_bound_by_prefill;
    const Lane& lane = planned.training.lane_of(OpId{static_cast<std::uint32_t>(i)});
    const bool first = index(lane.first) == i;
    const Duration before = first ? Duration{} : times[index(stretch.filled.training[i - 1])].end;
    outcome.delay += time.start - std::max(time.ready, before);
  }
}

/// Slices that arrived, and messages of training that waited for one.
void add_kv(const PlannedStretches& planned, const FilledStretch& stretch, const OpResults& results,
            PlayedKv& kv) {
  const Plan& plan = stretch.filled.plan;
  std::vector<bool> is_slice(results.times.size(), false);
  for (const plan::OpSlice& slice : plan.extras.slices) {
    if (plan.op(slice.op).kind != OpKind::send) continue;
    is_slice[index(slice.op)] = true;
    if (!results.outcomes.empty() && !has_run(results.outcomes[index(slice.op)])) continue;
    ++kv.slices;
    kv.bytes += plan.op(slice.op).size;
  }
  for (std::size_t i = 0; i < planned.training.ops.size(); ++i) {
    const OpTime& time = results.times[index(stretch.filled.training[i])];
    const Op& op = planned.training.ops[i];
    if (op.kind != OpKind::send || time.bound_by == kNone<OpId> || !is_slice[index(time.bound_by)])
      continue;
    ++kv.messages_bound;
    const OpId recv = stretch.filled.training[op.match];
    const bool first =
        index(planned.training.lane_of(OpId{static_cast<std::uint32_t>(i)}).first) == i;
    const Duration before =
        first ? Duration{} : results.times[index(stretch.filled.training[i - 1])].end;
    kv.delay += std::max(
        Duration{}, time.start - std::max({time.ready, before, results.times[index(recv)].ready}));
  }
}

/// A stage as it was played: the parts of it that ran.
struct PlayedStage {
  Duration start{}, end{}, computed{};
  bool is_done = true;
  bool has_begun = false;
};

PlayedStage played_stage(const prefill::FilledStage& stage, const OpResults& results) {
  PlayedStage played;
  for (std::size_t op = index(stage.first); op <= index(stage.op); ++op) {
    const OpTime& time = results.times[op];
    if (!results.outcomes.empty() && !has_run(results.outcomes[op])) {
      played.is_done = false;
      break;
    }
    if (op == index(stage.first)) played.start = time.start;
    played.has_begun = true;
    played.end = time.end;
    played.computed += time.end - time.start;
  }
  return played;
}

/// `stages` are those of one decision; `answered`: when the controller had placed it.
PlayedRequest played(const prefill::Decision& decision, Duration answered,
                     std::span<const prefill::FilledStage> stages, const OpResults& results) {
  PlayedRequest request{.request = decision.request,
                        .tokens = decision.tokens,
                        .model = decision.model,
                        .is_done = true,
                        .predicted_ttft = decision.end - decision.arrival};
  request.decision = answered - decision.arrival;
  std::optional<Duration> before;
  for (const prefill::FilledStage& each : stages) {
    const PlayedStage stage = played_stage(each, results);
    request.is_done = request.is_done && stage.is_done;
    request.was_killed = request.was_killed || (stage.has_begun && !stage.is_done);
    // From pass to pass on the first GPU, then with the last pass from GPU to GPU.
    if (each.placed.stage > 0 && each.placed.pass < stages.back().placed.pass) continue;
    if (!before)
      request.wait = stage.start - answered;
    else
      (each.placed.stage > 0 ? request.hop : request.wait) +=
          std::max(Duration{}, stage.start - *before);
    request.compute += stage.end - stage.start;
    request.ttft = stage.end - decision.arrival;
    before = stage.end;
  }
  return request;
}

/// When its request heard that it has a place: in an earlier stretch, or as the GPU heard of it.
Duration answered_at(const FilledStretch& stretch, std::size_t decision, const OpResults& results) {
  if (stretch.answers.empty()) return stretch.decisions[decision].arrival;
  const bool is_earlier = decision < stretch.told.size() && stretch.told[decision] < Duration{};
  return is_earlier ? stretch.told[decision] : results.times[index(stretch.answers[decision])].end;
}

/// Its keys and values, and its first token.
void add_token(const FilledStretch& stretch, const prefill::FilledToken& token,
               const OpResults& results, PlayedRequest& request) {
  const OpTime& time = results.times[index(token.op)];
  const bool ran = results.outcomes.empty() || has_run(results.outcomes[index(token.op)]);
  request.is_done = request.is_done && ran && !request.came_wrong;
  if (!request.is_done) return;
  const prefill::Decision& own = stretch.decisions[token.decision];
  const Duration computed = own.arrival + request.ttft;
  request.kv = std::max(Duration{}, time.start - computed);
  request.first_token = time.end - time.start;
  request.ttft = time.end - own.arrival;
}

/// Did one of a decision's stages end after its deadline, or the first token come after the SLO?
bool is_late(const ServedModel& model, const PlayedRequest& request,
             std::span<const prefill::FilledStage> stages, const OpResults& results) {
  if (request.is_done && model.slo_ttft && request.ttft > *model.slo_ttft) return true;
  if (results.outcomes.empty()) return false;
  return std::ranges::any_of(stages, [&](const prefill::FilledStage& stage) {
    const auto parts = std::span{results.outcomes}.subspan(
        index(stage.first), index(stage.op) - index(stage.first) + 1);
    return std::ranges::find(parts, Outcome::late) != parts.end();
  });
}

/// The requests whose keys and values came wrong.
std::set<std::int32_t> came_wrong(const FilledStretch& stretch, const std::vector<OpId>& wrong) {
  std::set<std::int32_t> requests;
  const auto& served = stretch.filled.plan.extras.served;
  for (const OpId op : wrong) {
    const auto found = std::ranges::lower_bound(served, op, {}, &plan::OpServed::op);
    if (found != served.end() && found->op == op) requests.insert(found->request);
  }
  return requests;
}

/// One that was not answered has no parts.
void forget_parts(PlayedRequest& request) {
  for (Duration* const part : {&request.ttft, &request.decision, &request.wait, &request.hop,
                               &request.kv, &request.first_token})
    *part = Duration{};
}

}  // namespace

PlayedKv& PlayedKv::operator+=(const PlayedKv& other) {
  slices += other.slices;
  bytes += other.bytes;
  messages_bound += other.messages_bound;
  delay += other.delay;
  return *this;
}

StretchOutcome outcome_of_training(const Plan& training, const OpTimes& times) {
  StretchOutcome outcome;
  add_training(training, times, {}, outcome);
  return outcome;
}

StretchOutcome outcome_of_filled(const PlannedStretches& planned, const FilledStretch& stretch,
                                 const OpResults& results, const std::vector<OpId>& wrong) {
  StretchOutcome outcome;
  outcome.tally = stretch.tally;
  add_training(planned.training, results.times, stretch.filled.training, outcome);
  add_delays(planned, stretch, results.times, outcome);
  add_kv(planned, stretch, results, outcome.kv);
  const std::set<std::int32_t> failed = came_wrong(stretch, wrong);
  auto token = stretch.filled.tokens.begin();
  const std::span stages{stretch.filled.stages};
  for (std::size_t first = 0, last = 0; first < stages.size(); first = last) {
    const std::size_t decision = stages[first].placed.decision;
    while (last < stages.size() && stages[last].placed.decision == decision) ++last;
    const prefill::Decision& own = stretch.decisions[decision];
    const Duration answered = answered_at(stretch, decision, results);
    PlayedRequest& request = outcome.requests.emplace_back(
        played(own, answered, stages.subspan(first, last - first), results));
    request.came_wrong = failed.contains(static_cast<std::int32_t>(request.request));
    if (token != stretch.filled.tokens.end() && token->decision == decision)
      add_token(stretch, *token++, results, request);
    else if (const auto& model = planned.served[own.model].model; model.decode && model.dimensions)
      request.is_done = false;  // without a first token
    if (!request.is_done) forget_parts(request);
    outcome.late += is_late(planned.served[own.model].model, request,
                            stages.subspan(first, last - first), results);
  }
  std::set<OpId> counted;  // prompts share passes
  for (const prefill::FilledStage& stage : stages) {
    if (!counted.insert(stage.op).second) continue;
    outcome.prefill += played_stage(stage, results).computed;
  }
  outcome.idle = prefill::idle_of_rows({planned.training, stretch.filled, planned.served,
                                        stretch.decisions, results, planned.bubbles.gpus},
                                       stretch.demand);
  if (planned.limits_memory())
    outcome.memory = prefill::memory_of_rows(*planned.memory, *planned.graph, planned.served,
                                             stretch.filled, stretch.decisions, results);
  return outcome;
}

}  // namespace longhaul::harness
