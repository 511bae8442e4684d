#include "planner/sites/drawn_sites.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "base/random.hpp"
#include "scenario/model_operators.hpp"

namespace longhaul::planner {
namespace {

using scenario::RegionTable;

const scenario::RegionPair* measured(const RegionTable& table, const std::string& from,
                                     const std::string& to) {
  const scenario::RegionPair* const there = table.find(from, to);
  return there != nullptr ? there : table.find(to, from);
}

/// Within a region, and where nothing is known, no time.
double round_trip_ms(const RegionTable& table, const std::string& from, const std::string& to) {
  const scenario::RegionPair* const pair = from == to ? nullptr : measured(table, from, to);
  return pair == nullptr ? 0 : static_cast<double>(pair->round_trip.count()) / 1e6;
}

std::vector<std::string> draw_regions(const RegionTable& table, std::size_t most, Random& random) {
  std::vector<std::string> all(table.regions().begin(), table.regions().end());
  for (std::size_t i = all.size(); i > 1; --i)
    std::swap(all[i - 1], all[at(random.between(0, static_cast<std::int64_t>(i) - 1))]);
  std::vector<std::string> taken;
  for (const std::string& region : all) {
    if (taken.size() == most) break;
    if (std::ranges::all_of(taken, [&](const std::string& other) {
          return measured(table, region, other) != nullptr;
        }))
      taken.push_back(region);
  }
  return taken;
}

/// Always on to the nearest region that is left.
void to_nearest(const RegionTable& table, std::vector<std::string>& tour) {
  for (auto next = tour.begin() + 1; next < tour.end(); ++next)
    std::iter_swap(next, std::ranges::min_element(next, tour.end(), {}, [&](const auto& region) {
                     return round_trip_ms(table, *(next - 1), region);
                   }));
}

/// Turns a part of the way around wherever that is shorter, until it never is.
void exchange(const RegionTable& table, std::vector<std::string>& tour) {
  double shortest = round_trips_ms(table, tour);
  for (bool found = true; found;) {
    found = false;
    for (auto first = tour.begin() + 1; first < tour.end(); ++first) {
      for (auto end = first + 2; end <= tour.end(); ++end) {
        std::reverse(first, end);
        const double length = round_trips_ms(table, tour);
        if (length < shortest * (1 - 1e-9)) {
          shortest = length;
          found = true;
        } else {
          std::reverse(first, end);
        }
      }
    }
  }
}

}  // namespace

double round_trips_ms(const RegionTable& table, const std::vector<std::string>& around) {
  double sum = 0;
  for (std::size_t i = 0; i < around.size(); ++i)
    sum += round_trip_ms(table, around[i], around[(i + 1) % around.size()]);
  return sum;
}

std::vector<std::string> draw_sites(const RegionTable& table, int sites, std::uint64_t seed,
                                    SiteTour tour) {
  Random random{seed};
  std::vector<std::string> regions = draw_regions(table, to_size(sites), random);
  if (tour == SiteTour::shortest) {
    to_nearest(table, regions);
    exchange(table, regions);
  }
  std::vector<std::string> all;
  const std::vector<int> share = scenario::evenly(sites, static_cast<int>(regions.size()));
  for (std::size_t i = 0; i < regions.size(); ++i)
    all.insert(all.end(), to_size(share[i]), regions[i]);
  return all;
}

}  // namespace longhaul::planner
