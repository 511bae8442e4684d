#include "trace/validate/check_rows.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "trace/validate/check_context.hpp"
#include "trace/validate/check_iteration.hpp"

namespace longhaul::trace {
namespace {

/// A clock that is further off than this is no clock: nothing larger is forgiven.
constexpr std::int64_t kMostClockErrorNs = 1'000'000'000;

/// Iterations that were seen, in few words: neighbours make up one range.
class SeenIterations {
public:
  /// False: it was there before.
  bool insert(IterationKey key) {
    auto& ranges = of_schedule_[key.schedule];  // first -> last
    auto above = ranges.upper_bound(key.iteration);
    const bool follows = above != ranges.begin();
    if (follows && std::prev(above)->second >= key.iteration) return false;
    if (follows && std::prev(above)->second + 1 == key.iteration) {
      std::prev(above)->second = key.iteration;
    } else {
      ranges.emplace_hint(above, key.iteration, key.iteration);
    }
    return true;
  }

private:
  std::map<int, std::map<std::int64_t, std::int64_t>> of_schedule_;
};

class RowChecker {
public:
  RowChecker(RowSource& source, const CheckContext& context, RowVisitor* visitor)
      : source_{source}, context_{context}, visitor_{visitor} {}

  /// One pass: other rules go on while values are sound, and count only if all of them are.
  Diagnostics run() {
    if (visitor_ != nullptr) visitor_->begin(context_.group, context_.slack_ns, *context_.names);
    for (std::uint64_t at = 0; at < source_.rows();) {
      const auto rows = first_iteration_of(source_.from(at));
      const std::size_t count = rows.size();
      const bool sound = check_values_of(rows);
      if (sound && visitor_ != nullptr) visitor_->add(rows);
      if (sound) check_iteration(rows, at);
      at += count;
    }
    finish_iteration();
    if (visitor_ != nullptr) visitor_->end();
    return values_.empty() ? of_iterations_ : values_;
  }

private:
  static IterationKey key_of(const TimelineRow& row) { return {row.schedule, row.iteration}; }

  static std::span<const TimelineRow> first_iteration_of(std::span<const TimelineRow> rows) {
    const auto end = std::ranges::find_if(
        rows, [&](const TimelineRow& row) { return key_of(row) != key_of(rows.front()); });
    return rows.first(to_size(end - rows.begin()));
  }

  bool check_values_of(std::span<const TimelineRow> rows) {
    for (const TimelineRow& row : rows) {
      // The rest relies on indices and sums.
      if (!check_values(row, context_, values_)) iteration_.reset();
    }
    return values_.empty();
  }

  void check_iteration(std::span<const TimelineRow> rows, std::uint64_t at) {
    const IterationKey key = key_of(rows.front());
    if (iteration_ && key == key_) return iteration_->add(rows);
    finish_iteration();
    // Earlier rows may have been read again, and these rows are gone from memory.
    const auto again = source_.from(at).first(rows.size());
    if (!seen_.insert(key))
      context_.add(of_iterations_, "iteration in pieces", name_of_row(again.front()),
                   "begins a second piece of its iteration.");
    iteration_.emplace(context_, key, source_, at);
    key_ = key;
    iteration_->add(again);
  }

  void finish_iteration() {
    if (iteration_) of_iterations_.append(iteration_->finish());
    iteration_.reset();
  }

  RowSource& source_;
  const CheckContext& context_;
  RowVisitor* visitor_;
  std::optional<IterationCheck> iteration_;
  IterationKey key_;
  SeenIterations seen_;
  Diagnostics values_, of_iterations_;
};

}  // namespace

std::int64_t measured_slack_ns(const std::string& environment) {
  const auto stated = nlohmann::json::parse(environment, nullptr, false);
  const auto error_of = [](const nlohmann::json& clock, const char* key) {
    if (!clock.is_object() || !clock.contains(key) || !clock[key].is_number_integer())
      return std::int64_t{0};
    return std::clamp(clock[key].get<std::int64_t>(), std::int64_t{0}, kMostClockErrorNs);
  };
  if (!stated.is_object()) return 0;
  const std::int64_t of_hosts =
      error_of(stated.value("clocks", nlohmann::json{}), "largest_error_ns");
  std::int64_t of_gpus = 0;
  const auto gpus = stated.value("accelerators", nlohmann::json::array());
  for (const auto& gpu : gpus) of_gpus = std::max(of_gpus, error_of(gpu, "clock_largest_error_ns"));
  return 2 * (of_hosts + of_gpus);
}

void check_rows(RowSource& rows, const char* group, std::int64_t slack_ns, Diagnostics& findings,
                std::size_t sort_bytes, RowVisitor* visitor) {
  const CheckContext context{group, slack_ns, sort_bytes, &rows.names()};
  findings.append(RowChecker{rows, context, visitor}.run());
}

void check_rows(const Timeline& timeline, const char* group, std::int64_t slack_ns,
                Diagnostics& findings) {
  RowsInMemory rows{timeline};
  check_rows(rows, group, slack_ns, findings);
}

}  // namespace longhaul::trace
