#include "engine/events/stream_control.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::engine {

ControlWords::ControlWords(EngineState& state, StreamControl& control)
    : state_{state}, control_{control} {
  if (!decides()) return;
  for (std::size_t r = 0; r < state.plan.ranks.size(); ++r) {
    const Rank rank{static_cast<std::int32_t>(r)};
    if (ops_of_rank(state.plan, rank).count > 0) others_.push_back(rank);
  }
}

int ControlWords::next_due(int iteration) const {
  while (iteration < past_ && !control_.is_due(iteration)) ++iteration;
  return iteration;
}

void ControlWords::begin(int first, int past) {
  past_ = past;
  awaited_ = next_due(first);
  reports_.clear();
  for (const Rank rank : others_)
    if (first < past) receive(rank, first, control_.report_size());
  if (!decides() && awaited_ < past_)
    receive(control_.controller(), awaited_, control_.verdict_size());
}

void ControlWords::send(Rank to, std::vector<std::byte> word) {
  const std::span<const std::byte> bytes{word};
  sent_.emplace(state_.transport.send(to, state_.tags.control(), bytes), std::move(word));
  state_.transport.ring_doorbell(to);
}

void ControlWords::receive(Rank from, int iteration, std::size_t size) {
  Wait wait{from, iteration, std::vector<std::byte>(size)};
  const std::span<std::byte> room{wait.word};
  waits_.emplace(state_.transport.receive(from, state_.tags.control(), room), std::move(wait));
}

void ControlWords::report(int iteration, const OpTimes& times) {
  std::vector<std::byte> word = control_.report(iteration, times);
  LONGHAUL_ASSERT(word.size() == control_.report_size(), "a report of {} bytes, not {}",
                  word.size(), control_.report_size());
  send(control_.controller(), std::move(word));
}

bool ControlWords::took(const comm::Completion& completion) {
  if (sent_.erase(completion.request) > 0) return true;
  const auto found = waits_.find(completion.request);
  if (found == waits_.end()) return false;
  const Wait word = std::move(found->second);
  waits_.erase(found);
  if (decides()) {
    heard(word);
    return true;
  }
  if (auto setting = control_.heed(word.iteration, word.word))
    settings_.push_back(*std::move(setting));
  awaited_ = next_due(word.iteration + 1);
  if (awaited_ < past_) receive(word.from, awaited_, control_.verdict_size());
  return true;
}

/// A rank reports in order, so all have of an iteration before the last of them does of the next.
void ControlWords::heard(const Wait& report) {
  control_.hear(report.iteration, report.from, report.word);
  if (report.iteration + 1 < past_)
    receive(report.from, report.iteration + 1, control_.report_size());
  if (++reports_[report.iteration] < others_.size()) return;
  reports_.erase(report.iteration);
  if (control_.is_due(report.iteration)) give_verdict(report.iteration);
}

void ControlWords::give_verdict(int iteration) {
  const std::vector<std::byte> verdict = control_.verdict(iteration);
  for (const Rank rank : others_) send(rank, verdict);
  if (auto setting = control_.heed(iteration, verdict)) settings_.push_back(*std::move(setting));
  awaited_ = next_due(iteration + 1);
}

}  // namespace longhaul::engine
