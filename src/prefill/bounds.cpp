#include "prefill/bounds.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/index.hpp"
#include "prefill/stage_windows.hpp"
#include "prefill/subset_sums.hpp"

namespace longhaul::prefill {
namespace {

/// What one GPU may be filled with.
struct GpuRole {
  std::set<std::pair<std::size_t, int>>
      stages{};  ///< model, and 0: its first stage, 1: a later one
};

std::vector<GpuRole> roles_of(int gpus, const std::vector<Served>& served) {
  std::vector<GpuRole> roles(to_size(gpus));
  for (std::size_t model = 0; model < served.size(); ++model)
    for (const Pipeline& pipeline : served[model].serving.pipelines)
      for (std::size_t stage = 0; stage < pipeline.ranks.size(); ++stage) {
        GpuRole& role = roles[at(pipeline.ranks[stage])];
        role.stages.emplace(model, stage == 0 ? 0 : 1);
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

std::vector<Fillable> fillable_windows(const IterationBubbles& iteration,
                                       const std::vector<Served>& served,
                                       const std::vector<Request>& file,
                                       const std::vector<FillWindow>& windows) {
  const std::vector<GpuRole> roles = roles_of(iteration.gpus, served);
  Duration longest{};
  for (const FillWindow& window : windows) longest = std::max(longest, window.end - window.start);
  std::map<std::set<std::pair<std::size_t, int>>, SubsetSums> sums;
  std::vector<Fillable> all;
  for (const FillWindow& window : windows) {
    const GpuRole& role = roles[at(window.rank)];
    auto known = sums.find(role.stages);
    if (known == sums.end())
      known = sums.emplace(role.stages, SubsetSums{stage_times(role.stages, served, file), longest})
                  .first;
    const Duration usable = window.end - window.start;
    all.push_back({usable, known->second.largest(usable)});
  }
  return all;
}

/// Is each prompt one pass of its own, whose times are those of the file?
bool has_whole_prompts(const std::vector<Served>& served) {
  return std::ranges::all_of(served, [](const Served& each) {
    return each.model.chunk == 0 && each.model.batch == 1 && each.model.prefix_cache == Bytes{};
  });
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
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return std::min(
      {bubbles, whole_prompts.value_or(kNone), mix.value_or(kNone), flow.value_or(kNone)});
}

const char* UtilisationBounds::reason() const {
  const double least = upper();
  if (bubbles == least) return "bubbles";
  if (whole_prompts && *whole_prompts == least) return "whole_prompts";
  return mix && *mix == least ? "mix" : "flow";
}

UtilisationBounds utilisation_bounds(const IterationBubbles& iteration,
                                     const std::vector<Served>& served,
                                     const std::vector<Request>& file,
                                     std::optional<std::int64_t> backlog_waiting,
                                     std::int64_t iterations) {
  const double gpu_time = static_cast<double>(iteration.period.count()) * iteration.gpus;
  UtilisationBounds bounds;
  if (gpu_time == 0) return bounds;
  const std::vector<FillWindow> windows = fill_windows(iteration, served, file);
  const std::vector<Fillable> bubbles = fillable_windows(iteration, served, file, windows);
  Duration usable{}, filled{};
  for (const Fillable& bubble : bubbles) {
    usable += bubble.usable;
    filled += bubble.filled;
  }
  const auto share = [&](double filling) {
    return (static_cast<double>(iteration.busy.count()) + filling) / gpu_time;
  };
  bounds.bubbles = share(static_cast<double>(usable.count()));
  if (!has_whole_prompts(served)) return bounds;
  bounds.whole_prompts = share(static_cast<double>(filled.count()));
  if (!backlog_waiting && iterations > 0)
    bounds.flow =
        share(static_cast<double>(most_flow(iteration, windows, served, file, iterations).count()) /
              static_cast<double>(iterations));
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
