#include "harness/prefill/stopped_run.hpp"

#include <algorithm>
#include <set>

namespace longhaul::harness {
namespace {

void cut(std::vector<prefill::Decision>& answers, const std::vector<StretchPair>& pairs,
         StretchOutcome StretchPair::*side, bool is_backlog) {
  std::set<std::int64_t> played;
  for (const StretchPair& pair : pairs)
    for (const PlayedRequest& each : (pair.*side).requests) played.insert(each.request);
  const auto is_cut = [&](const prefill::Decision& each) {
    return !each.refused && !played.contains(each.request);
  };
  if (is_backlog) {
    std::erase_if(answers, is_cut);
    return;
  }
  for (prefill::Decision& each : answers)
    if (is_cut(each)) each.refused = prefill::RefusalReason::closed;
}

}  // namespace

void cut_short(PrefillRun& run, const PrefillSettings& settings) {
  if (settings.controller == PrefillController::planned)
    cut(run.answers, run.pairs, &StretchPair::with, settings.backlog.has_value());
  cut(run.predicted_answers, run.pairs, &StretchPair::predicted, settings.backlog.has_value());
}

std::vector<std::int64_t> offered_to_plan(const PlannedStretches& planned,
                                          const PrefillSettings& settings, std::int64_t stretches) {
  std::vector<std::int64_t> ids;
  if (!settings.backlog) {
    for (const prefill::Request& each : planned.requests) ids.push_back(each.id);
    return ids;
  }
  for (const prefill::Decision& each : planned.decisions)
    if (each.refused || each.start < stretches * planned.stretch_time())
      ids.push_back(each.request);
  return ids;
}

std::string stopped_text(const PrefillRun& run, const PrefillOptions& options,
                         const PrefillSettings& settings) {
  const auto whole = std::ranges::count_if(run.pairs, &StretchPair::is_whole);
  return fmt::format("stopped by SIGTERM after {} of {} pairs{}{}", whole, settings.pairs,
                     std::cmp_less(whole, run.pairs.size()) ? " and a stretch with prefill" : "",
                     can_go_on(settings) && !options.out.empty() ? "; --resume goes on" : "");
}

}  // namespace longhaul::harness
