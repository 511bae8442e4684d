#include "planner/tune/family.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "base/program/arguments.hpp"
#include "planner/tune/family_between.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::array kFamilyColumns{"method",    "seed",      "exchange",
                                    "serve",     "staleness", "local_steps",
                                    "wan_bytes", "updates",   "validation"};
/// Those that a table may lack, after these, and what is then said.
constexpr std::array kMoreColumns{std::pair{"fragments", 1}, std::pair{"overlap", 0},
                                  std::pair{"host_tasks", 1}, std::pair{"early_exchanges", 0},
                                  std::pair{"early_wan_bytes", 0}};
using FamilyColumns =
    std::array<std::optional<std::size_t>, kFamilyColumns.size() + kMoreColumns.size()>;

const char* name_of_column(std::size_t column) {
  return column < kFamilyColumns.size() ? kFamilyColumns[column]
                                        : kMoreColumns[column - kFamilyColumns.size()].first;
}

FamilyColumns family_columns_of(const scenario::CsvLine& head) {
  FamilyColumns columns{};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto found = std::ranges::find(head.words, std::string_view{name_of_column(i)});
    if (found != head.words.end())
      columns[i] = static_cast<std::size_t>(found - head.words.begin());
    else if (i < kFamilyColumns.size())
      head.refuse("there is no column {} (a table of curves has {}). Name them in its first line.",
                  kFamilyColumns[i], fmt::join(kFamilyColumns, ","));
  }
  return columns;
}

/// A line of the table, by the names of its columns.
class FamilyLine {
public:
  FamilyLine(const scenario::CsvLine& line, const FamilyColumns& columns)
      : line_{line}, columns_{columns} {}

  [[nodiscard]] std::string word(std::size_t at) const {
    if (*columns_[at] >= line_.words.size())
      line_.refuse("{} words are too few. Give one for each column.", line_.words.size());
    return std::string{line_.words[*columns_[at]]};
  }
  [[nodiscard]] double number(std::size_t at, double least, double most) const {
    const std::optional<double> value = read_double(word(at));
    if (!value || !(*value >= least && *value <= most))
      line_.refuse("{} is \"{}\" (no number from {} to {}). Check the curve.", name_of_column(at),
                   word(at), least, most);
    return *value;
  }
  [[nodiscard]] int count(std::size_t at, int least, double most = 1e9) const {
    const double value = number(at, least, most);
    if (value != std::floor(value))
      line_.refuse("{} is \"{}\" (no whole number). Check the curve.", name_of_column(at),
                   word(at));
    return static_cast<int>(value);
  }
  /// Of kMoreColumns.
  [[nodiscard]] int count_or_default(std::size_t more, int least, double most) const {
    const std::size_t at = kFamilyColumns.size() + more;
    return says(at) ? count(at, least, most) : kMoreColumns[more].second;
  }
  [[nodiscard]] double number_or_default(std::size_t more, double least, double most) const {
    const std::size_t at = kFamilyColumns.size() + more;
    return says(at) ? number(at, least, most) : kMoreColumns[more].second;
  }
  template <ListedEnum Value>
  [[nodiscard]] Value choice(std::size_t at) const {
    const std::optional<Value> value = from_string<Value>(word(at));
    if (!value)
      line_.refuse("{} is \"{}\" (of {}). Check the curve.", name_of_column(at), word(at),
                   fmt::join(every_name<Value>(), ", "));
    return *value;
  }

  [[nodiscard]] FamilyMember member() const {
    return {.method = word(0),
            .exchange = choice<SetExchange>(2),
            .serve = choice<Serve>(3),
            .staleness = count(4, 0),
            .local_steps = count(5, 1),
            .wan_bytes = number(6, 0, kMostWanBytes),
            .early_exchanges = count_or_default(3, 0, 1e9),
            .early_wan_bytes = number_or_default(4, 0, kMostWanBytes),
            .fragments = count_or_default(0, 1, 1e9),
            .overlap = count_or_default(1, 0, 1e9),
            .has_host_tasks = count_or_default(2, 0, 1) == 1,
            .curves = {},
            .between = {}};
  }

private:
  static constexpr double kMostWanBytes = 1e18;

  [[nodiscard]] bool says(std::size_t at) const { return columns_[at] && !word(at).empty(); }

  const scenario::CsvLine& line_;
  const FamilyColumns& columns_;
};

bool exchange_equally(const FamilyMember& one, const FamilyMember& other) {
  return one.exchange == other.exchange && one.serve == other.serve &&
         one.staleness == other.staleness && one.local_steps == other.local_steps &&
         one.fragments == other.fragments && one.overlap == other.overlap &&
         one.early_exchanges == other.early_exchanges && one.has_host_tasks == other.has_host_tasks;
}

void add_line(std::vector<FamilyMember>& members, const scenario::CsvLine& line,
              const FamilyColumns& columns) {
  const FamilyLine read{line, columns};
  const FamilyMember said = read.member();
  auto member = std::ranges::find(members, said.method, &FamilyMember::method);
  if (member == members.end()) member = members.insert(members.end(), said);
  if (!exchange_equally(*member, said))
    line.refuse("{} exchanges otherwise than in the lines before. Give it one name each.",
                said.method);
  const int seed = read.count(1, 0);
  auto curve = std::ranges::find(member->curves, seed, &FamilyCurve::seed);
  if (curve == member->curves.end()) {
    curve = member->curves.insert(member->curves.end(), FamilyCurve{seed, {}});
    const auto runs = static_cast<double>(member->curves.size());
    for (auto bytes : {&FamilyMember::wan_bytes, &FamilyMember::early_wan_bytes})
      (*member).*bytes += (said.*bytes - (*member).*bytes) / runs;
  }
  const int updates = read.count(7, 0);
  if (!curve->points.empty() && updates <= curve->points.back().first)
    line.refuse("{} updates after {}. Keep them in order.", updates, curve->points.back().first);
  // A run that diverged has no loss there.
  const double loss = read.word(8).empty() ? kNever : read.number(8, 0, 1e9);
  curve->points.emplace_back(updates, loss);
}

/// Updates of the point before the first that reaches it, and of that one.
std::pair<double, double> crossing(const FamilyCurve& curve, double loss) {
  double before = 0;
  for (const auto& [updates, validation] : curve.points) {
    if (validation <= loss) return {before, updates};
    before = updates;
  }
  return {before, kNever};
}

double median_of_runs(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  const std::size_t half = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

}  // namespace

std::vector<FamilyMember> read_family(std::string_view csv, const std::string& source) {
  std::vector<FamilyMember> members;
  std::optional<FamilyColumns> columns;
  scenario::each_csv_line(csv, source, [&](const scenario::CsvLine& line) {
    if (columns)
      add_line(members, line, *columns);
    else
      columns = family_columns_of(line);
  });
  if (members.empty()) fail("{}: there is no curve. Give lines below the first.", source);
  return members;
}

namespace {

UpdatesToLoss updates_between(const FamilyBetween& between, double loss,
                              std::optional<int> left_out) {
  const UpdatesToLoss lower = updates_to(between.lower, loss, left_out);
  const UpdatesToLoss upper = updates_to(between.upper, loss, left_out);
  UpdatesToLoss found;
  found.runs = std::min(lower.runs, upper.runs);
  found.reached = std::min(lower.reached, upper.reached);
  found.least = std::min(lower.least, upper.least);
  if (lower.median && upper.median)
    found.median = *lower.median + between.share * (*upper.median - *lower.median);
  if (lower.most && upper.most) found.most = std::max(*lower.most, *upper.most);
  return found;
}

}  // namespace

void exchange_as(Training& train, const FamilyMember& member) {
  train.compress.exchange = member.exchange;
  train.serve = member.serve;
  train.staleness = member.staleness;
  train.local_steps = member.local_steps;
  train.adapt.every = 0;
  if (member.has_host_tasks) return;
  for (const auto task : kPartCosts)
    if (!(train.costs.*task).empty()) train.costs.*task = {Duration::zero()};
}

UpdatesToLoss updates_to(const FamilyMember& member, double loss, std::optional<int> left_out) {
  if (member.between) return updates_between(*member.between, loss, left_out);
  UpdatesToLoss found;
  found.least = kNever;
  std::vector<double> all;
  for (const FamilyCurve& curve : member.curves) {
    if (curve.seed == left_out) continue;
    const auto [before, at] = crossing(curve, loss);
    ++found.runs;
    if (at < kNever) ++found.reached;
    found.least = std::min(found.least, before);
    all.push_back(at);
  }
  if (all.empty()) return {};
  const double median = median_of_runs(all), most = std::ranges::max(all);
  if (median < kNever) found.median = median;
  if (most < kNever) found.most = most;
  return found;
}

double FamilyForecast::seconds_of(double updates_made, int local_steps) const {
  using Seconds = std::chrono::duration<double>;
  const double exchanges = updates_made / local_steps;
  return exchanges * Seconds(period).count() +
         std::min<double>(exchanges, early_exchanges) * Seconds(early_period - period).count();
}

std::optional<std::size_t> pick(const std::vector<FamilyMember>& members,
                                const std::vector<FamilyForecast>& forecasts) {
  std::optional<std::size_t> best;
  double least = kNever;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!forecasts[i].updates.median) continue;
    const double time =
        forecasts[i].seconds_of(*forecasts[i].updates.median, members[i].local_steps);
    if (time >= least) continue;
    best = i;
    least = time;
  }
  return best;
}

FamilyRegret regret_of(const std::vector<FamilyMember>& members,
                       const std::vector<FamilyForecast>& forecasts, double loss) {
  std::set<int> seeds;
  for (const FamilyMember& member : members)
    for (const FamilyCurve& curve : member.curves) seeds.insert(curve.seed);
  FamilyRegret regret;
  if (seeds.size() < 2) return regret;
  double sum = 0;
  for (const int seed : seeds) {
    std::vector<FamilyForecast> others;
    std::vector<double> times;  // on the seed itself
    for (std::size_t i = 0; i < members.size(); ++i) {
      others.push_back(forecasts[i]);
      others.back().updates = updates_to(members[i], loss, seed);
      double time = kNever;
      for (const FamilyCurve& curve : members[i].curves)
        if (curve.seed == seed)
          time = others.back().seconds_of(crossing(curve, loss).second, members[i].local_steps);
      times.push_back(time);
    }
    const double best = std::ranges::min(times);
    if (best == kNever) continue;
    ++regret.seeds;
    const std::optional<std::size_t> chosen = pick(members, others);
    if (!chosen || times[*chosen] == kNever)
      ++regret.missed;
    else
      sum += times[*chosen] / best - 1;
  }
  if (regret.seeds > 0 && regret.missed == 0) regret.mean = sum / regret.seeds;
  return regret;
}

}  // namespace longhaul::planner
