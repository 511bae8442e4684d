#include "planner/cluster/share_slot.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

#include "base/error.hpp"

namespace longhaul::planner {
namespace {

/// Plans end so much before deadlines, for sums of rounded times.
constexpr Duration kSlack = std::chrono::microseconds{1};

/// Positions of the jobs with deadlines, the first deadline first; of equal ones the job that was
/// submitted first.
std::vector<std::size_t> by_deadline(const std::vector<RunningJob>& running) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < running.size(); ++i)
    if (running[i].deadline) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return *running[i].deadline; });
  return order;
}

/// The least number of GPUs for all jobs that have deadlines. Index: position; nullopt: some job
/// would miss its own.
std::optional<std::vector<GpuPlan>> least_plans(const std::vector<RunningJob>& running,
                                                const ClusterOptions& options, std::int64_t slot) {
  std::vector<GpuPlan> plans(running.size());
  FreeGpus free{options.sites.empty() ? std::vector{options.gpus} : options.sites, slot,
                options.slot};
  for (const std::size_t i : by_deadline(running)) {
    const RunningJob& job = running[i];
    std::optional<GpuPlan> plan = free.fill(choices_of(job), job.left, *job.deadline - kSlack);
    if (!plan) return std::nullopt;
    free.take(*plan, choices_of(job));
    plans[i] = std::move(*plan);
  }
  return plans;
}

/// The rate that a plan gives in a slot; -1: none.
int planned(const GpuPlan& plan, std::int64_t slot) {
  for (const GpuSpan& span : plan)
    if (span.begin <= slot && slot < span.end) return span.choice;
  return -1;
}

void hold(RunningJob& job, int choice) {
  job.choice = choice;
  job.gpus = choice < 0 ? 0 : job.rates[static_cast<std::size_t>(choice)].gpus;
}

std::int64_t next_change(const GpuPlan& plan, std::int64_t slot) {
  for (const GpuSpan& span : plan) {
    if (span.begin > slot) return span.begin;
    if (span.end > slot) return span.end;
  }
  return std::numeric_limits<std::int64_t>::max();
}

/// The least number with which it meets its deadline by itself; without one its least.
const GpuRate& least_rate(const RunningJob& job, Duration now) {
  if (!job.deadline) return job.rates.front();
  const double available = seconds(*job.deadline - now);
  for (const GpuRate& each : job.rates)
    if (each.rate * available >= job.left) return each;
  return job.rates.back();
}

/// What a job takes of a slot next, and what it saves by that.
struct Step {
  bool first = false;  ///< it has none yet
  double saved = 0;    ///< GPU seconds for each GPU more
  std::size_t position = 0;
  int choice = -1;  ///< that it then holds
  friend bool operator<(const Step& a, const Step& b) {
    if (a.first != b.first) return b.first;
    if (a.saved != b.saved) return a.saved < b.saved;
    return a.position > b.position;
  }
};

/// Hands out what is left of a slot by diminishing returns.
class SlotGreed {
public:
  SlotGreed(std::vector<RunningJob>& running, Duration now, Duration slot)
      : running_{running}, slot_{seconds(slot)} {
    for (const RunningJob& job : running) rest_.push_back(&least_rate(job, now));
  }

  void hand_out(int free) {
    for (std::size_t i = 0; i < running_.size(); ++i) push(i);
    while (free > 0 && !steps_.empty()) {
      const Step step = steps_.top();
      steps_.pop();
      RunningJob& job = running_[step.position];
      const int more = job.rates[static_cast<std::size_t>(step.choice)].gpus - job.gpus;
      if (more > free) continue;  // nor will they be later in this slot
      free -= more;
      hold(job, step.choice);
      push(step.position);
    }
  }

  /// Of sites: a step goes to the fewest GPUs that are faster and free, with those it holds.
  void hand_out(std::vector<int> free) {
    while (true) {
      std::optional<Step> best;
      for (std::size_t i = 0; i < running_.size(); ++i)
        if (const int next = next_place(running_[i], free); next >= 0)
          if (const Step step = step_to(i, next); !best || *best < step) best = step;
      if (!best) return;
      RunningJob& job = running_[best->position];
      move(job, best->choice, free);
    }
  }

private:
  static int next_place(const RunningJob& job, std::vector<int> free) {
    if (job.choice >= 0) add(job.places[static_cast<std::size_t>(job.choice)], free);
    const double now = job.choice < 0 ? 0 : rate_of(job);
    for (std::size_t choice = 0; choice < job.rates.size(); ++choice)
      if (job.rates[choice].rate > now && lies_within(job.places[choice], free))
        return static_cast<int>(choice);
    return -1;
  }
  static void add(const SiteGpus& place, std::vector<int>& free) {
    for (std::size_t site = 0; site < free.size(); ++site) free[site] += place[site];
  }
  static void move(RunningJob& job, int choice, std::vector<int>& free) {
    if (job.choice >= 0) add(job.places[static_cast<std::size_t>(job.choice)], free);
    hold(job, choice);
    const SiteGpus& taken = job.places[static_cast<std::size_t>(choice)];
    for (std::size_t site = 0; site < free.size(); ++site) free[site] -= taken[site];
  }

  void push(std::size_t position) {
    const RunningJob& job = running_[position];
    const auto next = std::ranges::upper_bound(job.rates, job.gpus, {}, &GpuRate::gpus);
    if (next != job.rates.end())
      steps_.push(step_to(position, static_cast<int>(next - job.rates.begin())));
  }

  [[nodiscard]] Step step_to(std::size_t position, int choice) const {
    const RunningJob& job = running_[position];
    Step step{job.gpus == 0, 0, position, choice};
    const GpuRate& next = job.rates[static_cast<std::size_t>(choice)];
    if (!step.first)
      step.saved = (gpu_seconds(position, job.rates[static_cast<std::size_t>(job.choice)]) -
                    gpu_seconds(position, next)) /
                   std::max(1, next.gpus - job.gpus);
    return step;
  }

  /// Of the rest of a job that holds so many in this slot and its least number afterwards.
  [[nodiscard]] double gpu_seconds(std::size_t position, const GpuRate& held) const {
    const double left = running_[position].left;
    if (left <= held.rate * slot_) return left / held.rate * held.gpus;
    const GpuRate& rest = *rest_[position];
    return slot_ * held.gpus + (left - held.rate * slot_) / rest.rate * rest.gpus;
  }

  std::vector<RunningJob>& running_;
  double slot_;
  std::vector<const GpuRate*> rest_;
  std::priority_queue<Step> steps_;
};

std::int64_t share_elastic(std::vector<RunningJob>& running, const ClusterOptions& options,
                           std::int64_t slot) {
  // Filling anew may fail by the grain of the counts; what was planned before still holds.
  if (std::optional<std::vector<GpuPlan>> plans = least_plans(running, options, slot))
    for (std::size_t i = 0; i < running.size(); ++i) running[i].plan = std::move((*plans)[i]);
  int free = options.gpus;
  std::vector<int> sites = options.sites;
  std::int64_t changes = std::numeric_limits<std::int64_t>::max();
  for (RunningJob& job : running) {
    hold(job, planned(job.plan, slot));
    free -= job.gpus;
    if (job.choice >= 0)
      for (std::size_t site = 0; site < sites.size(); ++site)
        sites[site] -= job.places[static_cast<std::size_t>(job.choice)][site];
    changes = std::min(changes, next_change(job.plan, slot));
  }
  SlotGreed greed{running, slot * options.slot, options.slot};
  if (sites.empty())
    greed.hand_out(free);
  else
    greed.hand_out(std::move(sites));
  return changes;
}

/// Ascending keys come first.
double key_of(const RunningJob& job, const ClusterOptions& options, Duration now) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const auto fastest = std::ranges::max_element(job.rates, {}, &GpuRate::rate);
  const double rest = job.left / fastest->rate;
  switch (options.policy) {
    case ClusterPolicy::edf: return job.deadline ? seconds(*job.deadline) : kNever;
    case ClusterPolicy::srtf: return rest;
    case ClusterPolicy::least_laxity:
      return job.deadline ? seconds(*job.deadline - now) - rest : kNever;
    case ClusterPolicy::fifo:
    case ClusterPolicy::elasticflow: return 0;
  }
  fail_unlisted(static_cast<std::size_t>(options.policy), kCountOf<ClusterPolicy>);
}

std::vector<std::size_t> in_order(const std::vector<RunningJob>& running,
                                  const ClusterOptions& options, Duration now) {
  std::vector<std::size_t> order(running.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return key_of(running[i], options, now); });
  return order;
}

void share_in_order(std::vector<RunningJob>& running, const ClusterOptions& options, Duration now) {
  int free = options.gpus;
  for (const std::size_t i : in_order(running, options, now)) {
    RunningJob& job = running[i];
    const auto above = std::ranges::upper_bound(job.rates, free, {}, &GpuRate::gpus);
    hold(job, static_cast<int>(above - job.rates.begin()) - 1);
    free -= job.gpus;
  }
}

/// Is another place of the job as fast with no more GPUs anywhere? Of equal ones the first stays.
bool is_needless(const ClusterJob& job, std::size_t place) {
  for (std::size_t other = 0; other < job.places.size(); ++other) {
    if (other == place || !lies_within(job.places[other], job.places[place])) continue;
    if (job.rates[other].rate < job.rates[place].rate) continue;
    const bool equal =
        job.places[other] == job.places[place] && job.rates[other].rate == job.rates[place].rate;
    if (!equal || other < place) return true;
  }
  return false;
}

/// The place that the job takes of what is free; -1: none is.
int best_place(const RunningJob& job, GpuCounts counts, const std::vector<int>& free) {
  int best = -1;
  const auto worth = [&](int choice) {
    const GpuRate& rate = job.rates[static_cast<std::size_t>(choice)];
    const bool stays = choice == job.choice;
    const auto gpus = static_cast<double>(rate.gpus);
    return counts == GpuCounts::best ? std::tuple(rate.rate, -gpus, stays)
                                     : std::tuple(gpus, rate.rate, stays);
  };
  for (int choice = 0; choice < static_cast<int>(job.rates.size()); ++choice)
    if (lies_within(job.places[static_cast<std::size_t>(choice)], free) &&
        (best < 0 || worth(choice) > worth(best)))
      best = choice;
  return best;
}

void share_over_sites(std::vector<RunningJob>& running, const ClusterOptions& options,
                      Duration now) {
  std::vector<int> free = options.sites;
  for (const std::size_t i : in_order(running, options, now)) {
    RunningJob& job = running[i];
    hold(job, best_place(job, options.counts, free));
    if (job.choice < 0) continue;
    const SiteGpus& taken = job.places[static_cast<std::size_t>(job.choice)];
    for (std::size_t site = 0; site < free.size(); ++site) free[site] -= taken[site];
  }
}

}  // namespace

void take_rates(RunningJob& running, const ClusterJob& job, const ClusterOptions& options) {
  if (options.sites.empty()) {
    running.rates = options.counts == GpuCounts::best ? rising(job.rates) : job.rates;
    std::erase_if(running.rates, [&](const GpuRate& each) { return each.gpus > options.gpus; });
    return;
  }
  std::vector<std::size_t> taken;
  for (std::size_t i = 0; i < job.places.size(); ++i)
    if (lies_within(job.places[i], options.sites) &&
        (options.counts != GpuCounts::best || !is_needless(job, i)))
      taken.push_back(i);
  std::ranges::stable_sort(taken, {}, [&](std::size_t i) { return job.rates[i].gpus; });
  for (const std::size_t i : taken) {
    running.rates.push_back(job.rates[i]);
    running.places.push_back(job.places[i]);
  }
}

bool admit(const std::vector<RunningJob>& running, const RunningJob& added,
           const ClusterOptions& options, std::int64_t slot) {
  if (!added.deadline) return true;
  std::vector<RunningJob> all = running;
  all.push_back(added);
  return least_plans(all, options, slot).has_value();
}

std::int64_t share_slot(std::vector<RunningJob>& running, const ClusterOptions& options,
                        std::int64_t slot) {
  if (options.policy == ClusterPolicy::elasticflow) return share_elastic(running, options, slot);
  if (options.sites.empty())
    share_in_order(running, options, slot * options.slot);
  else
    share_over_sites(running, options, slot * options.slot);
  return std::numeric_limits<std::int64_t>::max();
}

}  // namespace longhaul::planner
