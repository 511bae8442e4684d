#include "planner/cluster/cluster.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "planner/cluster/share_slot.hpp"

namespace longhaul::planner {
namespace {

class ClusterRun {
public:
  ClusterRun(const std::vector<ClusterJob>& jobs, const ClusterOptions& options)
      : jobs_{jobs}, options_{options}, outcomes_(jobs.size()), by_submission_(jobs.size()) {
    std::iota(by_submission_.begin(), by_submission_.end(), std::size_t{0});
    std::ranges::stable_sort(by_submission_, {}, [&](std::size_t i) { return jobs_[i].submit; });
  }

  std::vector<JobOutcome> play() {
    std::int64_t slot = 0;
    while (next_ < by_submission_.size() || !running_.empty()) {
      if (running_.empty()) slot = std::max(slot, slot_from(jobs_[by_submission_[next_]].submit));
      end_late(slot * options_.slot);
      submit(slot);
      if (running_.empty()) continue;
      const std::int64_t changes = share_slot(running_, options_, slot);
      grant(slot * options_.slot);
      const std::int64_t next = std::min(changes, next_event(slot));
      run_until(slot, next);
      slot = next;
    }
    return std::move(outcomes_);
  }

private:
  /// The first slot that begins at that time or after it.
  [[nodiscard]] std::int64_t slot_from(Duration time) const {
    return (time + options_.slot - Duration{1}) / options_.slot;
  }

  void submit(std::int64_t slot) {
    for (; next_ < by_submission_.size(); ++next_) {
      const std::size_t index = by_submission_[next_];
      const ClusterJob& job = jobs_[index];
      if (job.submit > slot * options_.slot) return;
      RunningJob added;
      added.job = index;
      added.deadline = options_.deadlines ? job.deadline : std::nullopt;
      added.left = job.iterations;
      take_rates(added, job, options_);
      LONGHAUL_ASSERT(!added.rates.empty(), "job {} needs more than {} GPUs", job.name,
                      options_.gpus);
      if (added.deadline && *added.deadline <= slot * options_.slot) continue;  // too late to start
      if (options_.policy == ClusterPolicy::elasticflow && !admit(running_, added, options_, slot))
        continue;
      outcomes_[index].admitted = true;
      running_.push_back(std::move(added));
    }
  }

  void end_late(Duration now) {
    std::erase_if(running_, [&](const RunningJob& each) {
      const bool late = each.deadline && *each.deadline <= now;
      if (late) finish(each, *each.deadline);
      return late;
    });
  }

  /// Puts down what jobs hold from now on.
  void grant(Duration now) {
    for (RunningJob& each : running_) {
      JobOutcome& outcome = outcomes_[each.job];
      GpuGrant held{now, each.gpus, {}};
      if (each.choice >= 0 && !each.places.empty())
        held.at = each.places[static_cast<std::size_t>(each.choice)];
      const GpuGrant before = outcome.grants.empty() ? GpuGrant{} : outcome.grants.back();
      if (held.gpus == before.gpus && held.at == before.at) continue;
      if (outcome.start && each.gpus > 0) each.idle_until = now + options_.restart;
      if (!outcome.start) outcome.start = now;
      outcome.grants.push_back(std::move(held));
    }
  }

  [[nodiscard]] Duration end_of(const RunningJob& job, Duration now) const {
    if (job.gpus == 0) return Duration::max();
    const double needed = job.left / rate_of(job) * 1e9;
    constexpr double kLongest = 4e18;  // ns
    return std::max(now, job.idle_until) + Duration{std::llround(std::min(needed, kLongest))};
  }

  /// The first slot after this one before which a job comes, ends or is late.
  [[nodiscard]] std::int64_t next_event(std::int64_t slot) const {
    const Duration now = slot * options_.slot;
    Duration first = Duration::max() - options_.slot;
    if (next_ < by_submission_.size()) first = jobs_[by_submission_[next_]].submit;
    for (const RunningJob& each : running_) {
      first = std::min(first, end_of(each, now));
      if (each.deadline) first = std::min(first, *each.deadline);
    }
    return std::max(slot + 1, slot_from(first));
  }

  void run_until(std::int64_t slot, std::int64_t next) {
    const Duration now = slot * options_.slot;
    const Duration until = next * options_.slot;
    std::erase_if(running_, [&](RunningJob& each) {
      const Duration end = end_of(each, now);
      if (end <= until && (!each.deadline || end <= *each.deadline)) {
        outcomes_[each.job].met = true;
        finish(each, end);
        return true;
      }
      const Duration begin = std::min(std::max(now, each.idle_until), until);
      if (each.gpus > 0) each.left -= rate_of(each) * seconds(until - begin);
      return false;
    });
  }

  void finish(const RunningJob& job, Duration end) {
    JobOutcome& outcome = outcomes_[job.job];
    outcome.end = end;
    if (!outcome.grants.empty() && outcome.grants.back().gpus > 0)
      outcome.grants.push_back({end, 0, {}});
  }

  const std::vector<ClusterJob>& jobs_;
  const ClusterOptions& options_;
  std::vector<JobOutcome> outcomes_;
  std::vector<std::size_t> by_submission_;
  std::size_t next_ = 0;             ///< in by_submission_
  std::vector<RunningJob> running_;  ///< in the order of submission
};

/// GPU time of a job, in GPU seconds.
double held(const JobOutcome& outcome) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < outcome.grants.size(); ++i)
    sum += outcome.grants[i].gpus * seconds(outcome.grants[i + 1].from - outcome.grants[i].from);
  return sum;
}

}  // namespace

std::vector<GpuRate> rising(const std::vector<GpuRate>& rates) {
  std::vector<GpuRate> faster;
  for (const GpuRate& each : rates)
    if (faster.empty() || each.rate > faster.back().rate) faster.push_back(each);
  return faster;
}

ClusterOutcome play_cluster(const std::vector<ClusterJob>& jobs, const ClusterOptions& options) {
  ClusterOutcome outcome;
  if (jobs.empty()) return outcome;
  outcome.jobs = ClusterRun{jobs, options}.play();
  Duration first = Duration::max(), last{};
  double waited = 0, gpu_seconds = 0;
  int finished = 0, met = 0, asked = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobOutcome& job = outcome.jobs[i];
    first = std::min(first, jobs[i].submit);
    if (options.deadlines && jobs[i].deadline) {
      ++asked;
      met += job.met ? 1 : 0;
    }
    if (job.end) last = std::max(last, *job.end);
    gpu_seconds += held(job);
    if (!job.met) continue;
    ++finished;
    waited += seconds(*job.end - jobs[i].submit);
  }
  if (asked > 0) outcome.met_ratio = static_cast<double>(met) / asked;
  if (finished > 0) outcome.mean_seconds = waited / finished;
  outcome.makespan = std::max(last - first, Duration{});
  if (outcome.makespan > Duration{})
    outcome.utilization = gpu_seconds / (seconds(outcome.makespan) * options.gpus);
  return outcome;
}

}  // namespace longhaul::planner
