#include "harness/prefill/stretch_outcome.hpp"

#include <algorithm>
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
    is_prefill[index(stage.op)] = true;
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

/// `stages` are those of one decision.
PlayedRequest played(const prefill::Decision& decision,
                     std::span<const prefill::FilledStage> stages, const OpResults& results) {
  PlayedRequest request{.request = decision.request,
                        .tokens = decision.tokens,
                        .is_done = true,
                        .predicted_ttft = decision.end - decision.arrival};
  const OpTime* before = nullptr;
  for (const prefill::FilledStage& stage : stages) {
    const OpTime& time = results.times[index(stage.op)];
    if (!results.outcomes.empty() && !has_run(results.outcomes[index(stage.op)]))
      request.is_done = false;
    if (before == nullptr)
      request.wait = time.start - decision.arrival;
    else
      request.hop += std::max(Duration{}, time.start - before->end);
    request.compute += time.end - time.start;
    request.ttft = std::max(request.ttft, time.end - decision.arrival);
    before = &time;
  }
  if (!request.is_done) request.ttft = request.wait = request.hop = Duration{};
  return request;
}

}  // namespace

StretchOutcome outcome_of_training(const Plan& training, const OpTimes& times) {
  StretchOutcome outcome;
  add_training(training, times, {}, outcome);
  return outcome;
}

StretchOutcome outcome_of_filled(const PlannedStretches& planned, const FilledStretch& stretch,
                                 const OpResults& results) {
  StretchOutcome outcome;
  add_training(planned.training, results.times, stretch.filled.training, outcome);
  add_delays(planned, stretch, results.times, outcome);
  const std::span stages{stretch.filled.stages};
  for (std::size_t first = 0, last = 0; first < stages.size(); first = last) {
    const std::size_t decision = stages[first].placed.decision;
    while (last < stages.size() && stages[last].placed.decision == decision) ++last;
    outcome.requests.push_back(
        played(stretch.decisions[decision], stages.subspan(first, last - first), results));
  }
  for (const prefill::FilledStage& stage : stages) {
    const OpTime& time = results.times[index(stage.op)];
    outcome.prefill += time.end - time.start;  // of what did not run both are 0
    outcome.late += !results.outcomes.empty() && results.outcomes[index(stage.op)] == Outcome::late;
  }
  return outcome;
}

}  // namespace longhaul::harness
