#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "scenario/training.hpp"

namespace longhaul::planner {

/// The validation loss of one run over its updates, ascending.
struct FamilyCurve {
  int seed = 0;
  std::vector<std::pair<int, double>> points;
};

struct FamilyBetween;

/// At the end of a method's name: batches are divided by the throughput of the replicas.
inline constexpr std::string_view kHetero = "+hetero";

/// A method of training together that was tried: how it exchanges, and how it learns.
struct FamilyMember {
  std::string method;  ///< as bench_train was told it
  SetExchange exchange = SetExchange::ring;
  Serve serve = Serve::deadline;
  int staleness = 0;
  int local_steps = 1;   ///< updates of an exchange
  double wan_bytes = 0;  ///< of an exchange, between datacenters, all ways together: mean of runs
  /// Where its first exchanges send more: how many of them, and as `wan_bytes`, in their mean.
  int early_exchanges = 0;
  double early_wan_bytes = 0;
  int fragments = 1, overlap = 0;  ///< plan::PartExchanges
  bool has_host_tasks = true;      ///< those of [train.costs]
  std::vector<FamilyCurve> curves;
  /// Its neighbours, where no one ran it: planner/tune/family_between.hpp. Without curves then.
  std::shared_ptr<const FamilyBetween> between{};
};

/// [train] as the member exchanges, without a controller. Tasks that it does not have take no time
/// (`--set` says that, too). Not in it: how large sets are, `fragments` and `overlap`, kHetero.
void exchange_as(Training& train, const FamilyMember& member);

/// Reads a table with the columns method, seed, exchange, serve, staleness, local_steps, wan_bytes,
/// updates, validation (in any order, others left aside), and where it has them fragments (or 1),
/// overlap (0), host_tasks (0, or 1), early_exchanges and early_wan_bytes (0). Throws Error with
/// file:line where a value is none or out of range, where two lines of a method differ in how it
/// exchanges, and where updates do not ascend.
[[nodiscard]] std::vector<FamilyMember> read_family(std::string_view csv,
                                                    const std::string& source);

/// Updates until a loss is reached: medians and ranges over the runs. Runs see the loss at their
/// points alone, so the least is the point before the first that reaches it. Of a member between
/// two others: the median between theirs, the least and the most of both.
struct UpdatesToLoss {
  int runs = 0, reached = 0;
  std::optional<double> median;  ///< of all runs; one that does not reach it takes longest
  double least = 0;              ///< of any run; where none reaches it, its last point
  std::optional<double> most;    ///< none: a run does not reach it
};
[[nodiscard]] UpdatesToLoss updates_to(const FamilyMember& member, double loss,
                                       std::optional<int> left_out = std::nullopt);

/// A member under the links of a site.
struct FamilyForecast {
  UpdatesToLoss updates;
  Duration period{};  ///< of an exchange
  int early_exchanges = 0;
  Duration early_period{};  ///< of one of these

  /// Times of so many updates.
  [[nodiscard]] double seconds_of(double updates_made, int local_steps) const;
};

/// The member whose median time is least; none where no median is reached.
[[nodiscard]] std::optional<std::size_t> pick(const std::vector<FamilyMember>& members,
                                              const std::vector<FamilyForecast>& forecasts);

/// How much longer the pick of the other seeds takes on a seed than what is best there, in the mean
/// over seeds: 0 is never. `forecasts`: their periods count. None where there is one seed, or where
/// a pick does not reach the loss that another member does: who knows how much longer it would have
/// taken?
struct FamilyRegret {
  int seeds = 0, missed = 0;  ///< missed: the pick does not get there
  std::optional<double> mean;
};
[[nodiscard]] FamilyRegret regret_of(const std::vector<FamilyMember>& members,
                                     const std::vector<FamilyForecast>& forecasts, double loss);

}  // namespace longhaul::planner
