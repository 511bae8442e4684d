#include "prefill/bounds.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/index.hpp"
#include "prefill/subset_sums.hpp"

namespace longhaul::prefill {
namespace {

/// What one GPU may be filled with.
struct GpuRole {
  std::set<std::pair<std::size_t, int>>
      stages{};                      ///< model, and 0: its first stage, 1: a later one
  Duration guard = Duration::max();  ///< the least of its models
};

std::vector<GpuRole> roles_of(int gpus, const std::vector<Served>& served) {
  std::vector<GpuRole> roles(to_size(gpus));
  for (std::size_t model = 0; model < served.size(); ++model)
    for (const Pipeline& pipeline : served[model].serving.pipelines)
      for (std::size_t stage = 0; stage < pipeline.ranks.size(); ++stage) {
        GpuRole& role = roles[at(pipeline.ranks[stage])];
        role.stages.emplace(model, stage == 0 ? 0 : 1);
        role.guard = std::min(role.guard, served[model].model.guard);
      }
  return roles;
}

/// The times that a GPU of these stages may spend on one prompt of the file.
std::vector<Duration> stage_times(const std::set<std::pair<std::size_t, int>>& stages,
                                  const std::vector<Served>& served,
                                  const std::vector<Request>& file) {
  std::set<Duration> times;
  for (const Request& request : file) {
    const std::size_t model = served_index(request, served);
    for (const int stage : {0, 1})
      if (stages.contains({model, stage}))
        if (const auto whole = served[model].model.time(request.tokens))
          times.insert(served[model].model.stage_time(*whole, stage));
  }
  return {times.begin(), times.end()};
}

/// A bubble that may be filled: its length less the guard, and the most that whole prompts fill.
struct Fillable {
  Duration usable{}, filled{};
};

std::vector<Fillable> fillable_bubbles(const IterationBubbles& iteration,
                                       const std::vector<Served>& served,
                                       const std::vector<Request>& file) {
  const std::vector<GpuRole> roles = roles_of(iteration.gpus, served);
  Duration longest{};
  for (const Bubble& bubble : iteration.bubbles) longest = std::max(longest, bubble.length());
  std::map<std::set<std::pair<std::size_t, int>>, SubsetSums> sums;
  std::vector<Fillable> all;
  for (const Bubble& bubble : iteration.bubbles) {
    const GpuRole& role = roles[at(bubble.rank)];
    if (role.stages.empty() || bubble.length() <= role.guard) continue;
    auto known = sums.find(role.stages);
    if (known == sums.end())
      known = sums.emplace(role.stages, SubsetSums{stage_times(role.stages, served, file), longest})
                  .first;
    const Duration usable = bubble.length() - role.guard;
    all.push_back({usable, known->second.largest(usable)});
  }
  return all;
}

/// The most work of a backlog's prompts that bubbles hold, where no more than `waiting` are left
/// out of the prompts that came. Those longer than some bubble's time fit into longer ones alone;
/// when these are full no more of them come, and with them none of the shorter ones between them.
double most_of_mix(const std::vector<Fillable>& bubbles, const std::vector<Duration>& prompts,
                   std::int64_t waiting, std::int64_t iterations) {
  const auto seconds = [](Duration time) { return static_cast<double>(time.count()); };
  double all = 0;
  std::set<Duration> lengths;
  for (const Fillable& bubble : bubbles) {
    all += static_cast<double>(iterations) * seconds(bubble.filled);
    lengths.insert(bubble.usable);
  }
  if (prompts.empty()) return 0;
  const double longest = seconds(std::ranges::max(prompts));
  double least = all;
  for (const Duration length : lengths) {
    double room = 0;  // of bubbles longer than that
    for (const Fillable& bubble : bubbles)
      if (bubble.usable > length) room += static_cast<double>(iterations) * seconds(bubble.filled);
    double longer = 0, shorter = 0;
    for (const Duration prompt : prompts) (prompt > length ? longer : shorter) += seconds(prompt);
    if (longer == 0) continue;
    const double limit = room + static_cast<double>(waiting) * longest;
    const double rounds = std::floor(limit / longer);
    double left = limit - rounds * longer, came = rounds * shorter;
    for (const Duration prompt : prompts) {
      if (prompt > length && (left -= seconds(prompt)) < 0) break;
      if (prompt <= length) came += seconds(prompt);
    }
    least = std::min(least, room + came);
  }
  return least;
}

}  // namespace

double UtilisationBounds::upper() const {
  return std::min({bubbles, whole_prompts, mix.value_or(std::numeric_limits<double>::infinity())});
}

const char* UtilisationBounds::reason() const {
  if (mix && *mix == upper()) return "mix";
  return whole_prompts == upper() ? "whole_prompts" : "bubbles";
}

UtilisationBounds utilisation_bounds(const IterationBubbles& iteration,
                                     const std::vector<Served>& served,
                                     const std::vector<Request>& file,
                                     std::optional<std::int64_t> backlog_waiting,
                                     std::int64_t iterations) {
  const double gpu_time = static_cast<double>(iteration.period.count()) * iteration.gpus;
  UtilisationBounds bounds;
  if (gpu_time == 0) return bounds;
  const std::vector<Fillable> bubbles = fillable_bubbles(iteration, served, file);
  Duration usable{}, filled{};
  for (const Fillable& bubble : bubbles) {
    usable += bubble.usable;
    filled += bubble.filled;
  }
  const auto share = [&](double filling) {
    return (static_cast<double>(iteration.busy.count()) + filling) / gpu_time;
  };
  bounds.bubbles = share(static_cast<double>(usable.count()));
  bounds.whole_prompts = share(static_cast<double>(filled.count()));
  if (backlog_waiting && served.size() == 1 && served.front().model.stages == 1) {
    Duration longest{};
    for (const Fillable& bubble : bubbles) longest = std::max(longest, bubble.usable);
    std::vector<Duration> prompts;
    for (const Request& request : file)
      if (const auto whole = served.front().model.time(request.tokens); whole && *whole <= longest)
        prompts.push_back(*whole);
    bounds.mix = share(most_of_mix(bubbles, prompts, *backlog_waiting, iterations) /
                       static_cast<double>(iterations));
  }
  return bounds;
}

}  // namespace longhaul::prefill
