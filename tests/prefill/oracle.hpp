#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "prefill/requests.hpp"
#include "scenario/scenario.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::prefill {

/// An oracle: every start from the arrival on, one nanosecond after the other, over all pipelines;
/// a stage fits where none of its nanoseconds is a block's, a guard's or another prefill's.
class Oracle {
public:
  /// `pipelines`: GPUs by stage; their numbers are their places.
  Oracle(const std::vector<TimelineRow>& rows, const Scenario& scenario,
         std::vector<std::vector<std::size_t>> pipelines, bool apart)
      : model_{scenario.served.front()}, pipelines_{std::move(pipelines)}, apart_{apart} {
    for (const TimelineRow& row : rows) period_ = std::max(period_, row.end_ns);
    const auto gpus = static_cast<std::size_t>(scenario.ranks());
    computes_.assign(gpus, std::vector<bool>(static_cast<std::size_t>(period_), false));
    taken_.assign(gpus, std::vector<bool>(kHorizon, false));
    for (const TimelineRow& row : rows)
      for (std::int64_t time = row.start_ns; time < row.end_ns; ++time)
        computes_[static_cast<std::size_t>(row.rank)][static_cast<std::size_t>(time)] = true;
  }

  /// Pipeline and start; {-1, -1}: refused. `tightest`: of the pipelines that start it then the one
  /// whose gap it leaves least of, not the lowest.
  std::pair<int, std::int64_t> place(const Request& request, std::int64_t network, bool tightest) {
    const std::int64_t whole = model_.time(request.tokens)->count();
    const int pipelines = static_cast<int>(pipelines_.size());
    for (std::int64_t start = request.arrival.count() + network / 2; start < kLast; ++start) {
      int best = -1;
      for (int pipeline = 0; pipeline < pipelines; ++pipeline) {
        if (!fits(pipeline, start, whole, false)) continue;
        if (best < 0 || (tightest && left(pipeline, start) < left(best, start))) best = pipeline;
      }
      if (best < 0) continue;
      const std::int64_t end = start + whole + (model_.stages - 1) * model_.hop.count();
      const std::int64_t ttft = end + network / 2 - request.arrival.count();
      if (model_.slo_ttft && ttft > model_.slo_ttft->count()) return {-1, -1};
      (void)fits(best, start, whole, true);
      return {best, start};
    }
    return {-1, -1};
  }

private:
  static constexpr std::size_t kHorizon = 4000;
  static constexpr std::int64_t kLast = 3000;

  std::size_t gpu_of(int pipeline, int stage) const {
    return pipelines_[static_cast<std::size_t>(pipeline)][static_cast<std::size_t>(stage)];
  }

  /// How long the first stage's GPU may compute from then on.
  std::int64_t left(int pipeline, std::int64_t start) const {
    const std::size_t gpu = gpu_of(pipeline, 0);
    for (std::int64_t time = start;; ++time) {
      if (computes_[gpu][static_cast<std::size_t>(time % period_)])
        return time - model_.guard.count() - start;
      if (taken_[gpu][static_cast<std::size_t>(time)]) return time - start;
    }
  }

  bool fits(int pipeline, std::int64_t start, std::int64_t whole, bool take) {
    const std::int64_t end = start + whole + (model_.stages - 1) * model_.hop.count();
    if (apart_ && start / period_ != (end - 1) / period_) return false;
    for (int stage = 0; stage < model_.stages; ++stage) {
      const std::size_t gpu = gpu_of(pipeline, stage);
      const std::int64_t length = whole / model_.stages + (stage == 0 ? whole % model_.stages : 0);
      for (std::int64_t time = start; time < start + length + model_.guard.count(); ++time) {
        if (computes_[gpu][static_cast<std::size_t>(time % period_)]) return false;
        if (time >= start + length) continue;
        if (taken_[gpu][static_cast<std::size_t>(time)]) return false;
        if (take) taken_[gpu][static_cast<std::size_t>(time)] = true;
      }
      start += length + model_.hop.count();
    }
    return true;
  }

  ServedModel model_;
  std::vector<std::vector<std::size_t>> pipelines_;
  bool apart_;
  std::int64_t period_ = 0;
  std::vector<std::vector<bool>> computes_, taken_;
};

}  // namespace longhaul::prefill
