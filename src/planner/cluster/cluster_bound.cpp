#include "planner/cluster/cluster_bound.hpp"

#include <algorithm>
#include <limits>
#include <queue>

namespace longhaul::planner {
namespace {

constexpr std::size_t kMostBegins = 512;

/// What any schedule spends on a job. GPUs above the cluster's do not count.
struct JobNeed {
  double begin, deadline;  ///< s
  double gpu_seconds;      ///< with its thriftiest count
};

double fastest_seconds(const ClusterJob& job, int gpus) {
  double best = 0;
  for (const GpuRate& each : job.rates)
    if (each.gpus <= gpus) best = std::max(best, each.rate);
  return job.iterations / best;
}

double least_gpu_seconds(const ClusterJob& job, int gpus) {
  double least = std::numeric_limits<double>::infinity();
  for (const GpuRate& each : job.rates)
    if (each.gpus <= gpus) least = std::min(least, job.iterations / each.rate * each.gpus);
  return least;
}

/// How many of the jobs that begin at `begin` or later are late at least, up to each deadline.
/// `needs` by deadline. Index: as `needs`.
std::vector<int> late_until(const std::vector<JobNeed>& needs, double begin, int gpus) {
  std::vector<int> late(needs.size());
  std::priority_queue<double> kept;
  double sum = 0;
  int dropped = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (needs[i].begin >= begin) {
      kept.push(needs[i].gpu_seconds);
      sum += needs[i].gpu_seconds;
      const double room = gpus * (needs[i].deadline - begin) * (1 + 1e-9);
      if (sum > room) {
        sum -= kept.top();
        kept.pop();
        ++dropped;
      }
    }
    late[i] = dropped;
  }
  return late;
}

}  // namespace

std::optional<int> most_deadlines(const std::vector<ClusterJob>& jobs, int gpus) {
  int asked = 0;
  std::vector<JobNeed> needs;
  for (const ClusterJob& job : jobs) {
    if (!job.deadline) continue;
    ++asked;
    const JobNeed need{seconds(job.submit), seconds(*job.deadline), least_gpu_seconds(job, gpus)};
    if (fastest_seconds(job, gpus) <= (need.deadline - need.begin) * (1 + 1e-9))
      needs.push_back(need);
  }
  if (asked == 0) return std::nullopt;
  std::ranges::stable_sort(needs, {}, &JobNeed::deadline);
  std::vector<double> begins;
  for (const JobNeed& need : needs) begins.push_back(need.begin);
  std::ranges::sort(begins);
  begins.erase(std::ranges::unique(begins).begin(), begins.end());
  if (begins.size() > kMostBegins) {
    std::vector<double> some;
    for (std::size_t i = 0; i < kMostBegins; ++i)
      some.push_back(begins[i * begins.size() / kMostBegins]);
    begins = std::move(some);
  }
  // Of the jobs that end by needs[i].deadline so many are late, in disjoint intervals up to it.
  std::vector<int> late(needs.size() + 1, 0);
  for (const double begin : begins) {
    const auto ended = std::ranges::upper_bound(needs, begin, {}, &JobNeed::deadline);
    const int before = late[static_cast<std::size_t>(ended - needs.begin())];
    const std::vector<int> inside = late_until(needs, begin, gpus);
    int most = 0;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (needs[i].deadline > begin) late[i + 1] = std::max(late[i + 1], before + inside[i]);
      most = late[i + 1] = std::max(most, late[i + 1]);
    }
  }
  return static_cast<int>(needs.size()) - late.back();
}

Duration least_makespan(const std::vector<ClusterJob>& jobs, const std::vector<bool>& counts,
                        int gpus) {
  double first = std::numeric_limits<double>::infinity(), end = 0;
  std::vector<std::pair<double, double>> needs;  // submission, GPU seconds
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double submit = seconds(jobs[i].submit);
    first = std::min(first, submit);
    if (!counts[i]) continue;
    end = std::max(end, submit + fastest_seconds(jobs[i], gpus));
    needs.emplace_back(submit, least_gpu_seconds(jobs[i], gpus));
  }
  std::ranges::sort(needs, std::greater<>{});
  double sum = 0;
  for (const auto& [submit, gpu_seconds] : needs) {
    sum += gpu_seconds;
    end = std::max(end, submit + sum / gpus);
  }
  const double span = needs.empty() ? 0 : std::max(0.0, end - first);
  return Duration{static_cast<std::int64_t>(span * 1e9 * (1 - 1e-12))};
}

}  // namespace longhaul::planner
