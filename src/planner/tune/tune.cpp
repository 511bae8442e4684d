#include "planner/tune/tune.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "base/statistics/portable_math.hpp"
#include "planner/tune/nelder_mead.hpp"
#include "planner/tune/tune_space.hpp"

namespace longhaul::planner {
namespace {

constexpr int kCoarseRates = 8;
constexpr double kMostExhaustive = 4e6;  // settings: some seconds
constexpr double kIndistinct = 0.001;

using Batches = std::vector<int>;

struct TuneCandidate {
  Batches batches;
  double objective = 0;
};

/// g between the corners of a grid over what the probes cover, for a first look at many settings.
class CoarseSurface {
public:
  explicit CoarseSurface(const TuneSpace& space)
      : space_{space}, most_{space.samples(space.most_of_all())} {
    for (int x = 0; x <= kBatches; ++x)
      for (int y = 0; y <= kRates; ++y)
        g_.push_back(space.surrogate.g(most_ * x / kBatches, static_cast<double>(y) / kRates));
  }

  /// Equation 1 at the least rate, and at the grid's above it.
  [[nodiscard]] double objective(const Batches& batches) const {
    const TuneSpace::Timing timing = space_.timing_of(batches);
    const double at = std::min(timing.samples / most_, 1.0) * kBatches;
    const double least = space_.least_rate_of(timing.fastest) * kRates;
    double g = between(at, least);
    for (int y = static_cast<int>(least) + 1; y <= kRates; ++y) g = std::min(g, between(at, y));
    return (1 + g) * timing.slowest / timing.samples + space_.problem.lambda * timing.spread;
  }

private:
  static constexpr int kBatches = 32, kRates = 24;

  [[nodiscard]] double between(double x, double y) const {
    const int left = std::min(static_cast<int>(x), kBatches - 1);
    const int below = std::min(static_cast<int>(y), kRates - 1);
    const auto corner = [&](int i, int j) {
      return g_[static_cast<std::size_t>((left + i) * (kRates + 1) + below + j)];
    };
    const double u = x - left, v = y - below;
    return (1 - u) * ((1 - v) * corner(0, 0) + v * corner(0, 1)) +
           u * ((1 - v) * corner(1, 0) + v * corner(1, 1));
  }

  const TuneSpace& space_;
  double most_;
  std::vector<double> g_;
};

/// Every time of an iteration that one of the kinds can have, the batches as large as fit it.
std::vector<Batches> every_time(const TuneSpace& space) {
  std::set<Batches> all;
  for (std::size_t k = 0; k < space.kinds().size(); ++k)
    for (int batch = 1; batch <= space.most(k); ++batch)
      all.insert(space.within(space.kinds()[k].speed.seconds(batch)));
  all.erase(Batches{});
  return {all.begin(), all.end()};
}

/// Those of every_time that look best.
std::vector<TuneCandidate> along_time(const TuneSpace& space) {
  const CoarseSurface surface{space};
  std::vector<TuneCandidate> candidates;
  for (Batches& batches : every_time(space)) {
    const double objective = surface.objective(batches);
    candidates.push_back({std::move(batches), objective});
  }
  std::ranges::stable_sort(candidates, {}, &TuneCandidate::objective);
  return candidates;
}

std::vector<double> exponentials(std::span<const double> logs) {
  std::vector<double> values;
  for (const double log : logs) values.push_back(exponential(std::clamp(log, -50.0, 50.0)));
  return values;
}

/// Nelder-Mead over the logarithms of batches, rounded.
Batches refined(const TuneSpace& space, const Batches& from) {
  std::vector<double> start;
  for (const int batch : from) start.push_back(logarithm(batch));
  const auto function = [&](std::span<const double> logs) {
    return space.objective(exponentials(logs), kCoarseRates);
  };
  const Minimum found =
      nelder_mead(function, start, {.step = -0.1, .tolerance = 1e-6, .most_evaluations = 150});
  Batches batches;
  for (const double value : exponentials(found.at))
    batches.push_back(static_cast<int>(std::lround(value)));
  return space.allows(batches) ? batches : from;
}

/// Changes one batch after the other by one, and all together, as long as that helps.
TuneChoice polished(const TuneSpace& space, Batches batches) {
  TuneChoice best = space.roughly_best_at(batches, kCoarseRates);
  const auto helps = [&](const Batches& tried) {
    if (!space.allows(tried)) return false;
    const TuneChoice choice = space.roughly_best_at(tried, kCoarseRates);
    if (!(choice.objective < best.objective)) return false;
    best = choice;
    batches = tried;
    return true;
  };
  constexpr int kMostRounds = 64;
  bool helped = true;
  for (int round = 0; helped && round < kMostRounds; ++round) {
    helped = false;
    for (std::size_t k = 0; k < batches.size(); ++k)
      for (const int step : {-1, 1}) {
        Batches tried = batches;
        tried[k] += step;
        helped = helps(tried) || helped;
      }
  }
  return space.best_at(batches);
}

void keep_best(TuneChoice& best, TuneChoice choice) {
  if (best.batch.empty() || choice.objective < best.objective) best = std::move(choice);
}

/// The least g at or above each rate_at, for batches of any sum that was asked for.
class RateTable {
public:
  explicit RateTable(const TuneSpace& space) : space_{space} {}

  double objective(const Batches& batches) {
    const TuneChoice least = space_.roughly_best_at(batches, 0);
    const auto sum = static_cast<std::size_t>(space_.samples(batches));
    int first = static_cast<int>(least.compression_rate / kLargestRate * (kRates - 1));
    while (first < kRates && rate_at(first) <= least.compression_rate) ++first;
    double g = least.g;
    if (first < kRates) g = std::min(g, least_above(sum)[static_cast<std::size_t>(first)]);
    return (1 + g) * least.seconds / static_cast<double>(sum) +
           space_.problem.lambda * least.spread;
  }

private:
  const std::vector<double>& least_above(std::size_t sum) {
    if (table_.size() <= sum) table_.resize(sum + 1);
    std::vector<double>& row = table_[sum];
    if (!row.empty()) return row;
    row.resize(kRates);
    double least = std::numeric_limits<double>::infinity();
    for (int i = kRates; i-- > 0;) {
      least = std::min(least, space_.surrogate.g(static_cast<double>(sum), rate_at(i)));
      row[static_cast<std::size_t>(i)] = least;
    }
    return row;
  }

  const TuneSpace& space_;
  std::vector<std::vector<double>> table_;
};

/// Of settings that are as good, but for less than probes can tell, the one with the fewest
/// samples.
TuneChoice smallest_of_equals(const TuneSpace& space, std::vector<TuneCandidate> candidates,
                              const TuneChoice& best) {
  const double most = best.objective * (1 + kIndistinct);
  std::erase_if(candidates, [&](const TuneCandidate& candidate) {
    return candidate.objective > best.objective * (1 + 3 * kIndistinct);
  });
  std::ranges::stable_sort(candidates, {}, [&](const TuneCandidate& candidate) {
    return space.samples(candidate.batches);
  });
  constexpr std::size_t kMostTried = 64;
  for (std::size_t i = 0; i < std::min(kMostTried, candidates.size()); ++i)
    if (space.roughly_best_at(candidates[i].batches, kCoarseRates).objective <= most)
      return polished(space, candidates[i].batches);
  return best;
}

/// Calls `take` with all batches of all kinds.
template <typename Take>
void each_batch(const TuneSpace& space, Take take) {
  Batches batches(space.kinds().size(), 1);
  for (std::size_t at = 0; at < batches.size();) {
    if (space.allows(batches)) take(batches);
    for (at = 0; at < batches.size() && ++batches[at] > space.most(at); ++at) batches[at] = 1;
  }
}

/// How many each_batch takes.
double batches_of(const TuneSpace& space) {
  double product = 1;
  for (const int most : space.most_of_all()) product *= most;
  return product;
}

/// What tune_exhaustively takes: all batches, or those of every time where kinds are many.
template <typename Take>
bool each_of_everything(const TuneSpace& space, Take take) {
  const double rates = kRates * space.most_samples();  // the table's
  if (batches_of(space) + rates <= kMostExhaustive) {
    each_batch(space, take);
    return true;
  }
  if (space.kinds().size() <= 2 || rates > kMostExhaustive) return false;
  for (const Batches& batches : every_time(space)) take(batches);
  return true;
}

}  // namespace

const char* to_string(TuneBinding binding) {
  return binding == TuneBinding::bandwidth ? "bandwidth" : "surrogate";
}

double least_rate(const TuneProblem& problem, const std::vector<int>& batch, Bandwidth bandwidth) {
  double fastest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < batch.size(); ++i)
    fastest = std::min(fastest, problem.gpus[i].seconds(batch[i]));
  return std::max(0.0, 1 - bandwidth.bits_per_second() / 8 / problem.model_bytes * fastest);
}

TuneChoice tune(const TuneProblem& problem, const Surrogate& surrogate, Bandwidth bandwidth) {
  const TuneSpace space{problem, surrogate, bandwidth};
  const std::vector<TuneCandidate> candidates = along_time(space);
  if (candidates.empty())
    fail("no batch of {} replicas is one that the probes cover. Probe others.",
         problem.gpus.size());
  constexpr std::size_t kStarts = 6;
  TuneChoice best;
  for (std::size_t i = 0; i < std::min(kStarts, candidates.size()); ++i)
    keep_best(best, polished(space, candidates[i].batches));
  keep_best(best, polished(space, refined(space, candidates.front().batches)));
  return smallest_of_equals(space, candidates, best);
}

std::optional<TuneChoice> tune_exhaustively(const TuneProblem& problem, const Surrogate& surrogate,
                                            Bandwidth bandwidth) {
  const TuneSpace space{problem, surrogate, bandwidth};
  RateTable table{space};
  Batches best;
  double least = std::numeric_limits<double>::infinity();
  const bool taken = each_of_everything(space, [&](const Batches& batches) {
    const double objective = table.objective(batches);
    if (!(objective < least)) return;
    least = objective;
    best = batches;
  });
  if (!taken) return std::nullopt;
  if (best.empty()) fail("no batch is one that the probes cover. Probe others.");
  return space.best_at(best);
}

}  // namespace longhaul::planner
