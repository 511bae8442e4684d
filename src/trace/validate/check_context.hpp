#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "trace/timeline/diagnostics.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

/// The row that a finding is about.
struct RowName {
  std::int64_t op = 0;
  std::int32_t schedule = 0, iteration = 0, rank = 0;
};
[[nodiscard]] inline RowName name_of_row(const TimelineRow& row) {
  return {row.op, row.schedule, row.iteration, row.rank};
}

/// State that all rules about the rows of a group share.
struct CheckContext {
  const char* group = "";           ///< "measured" or "predicted", in texts
  std::int64_t slack_ns = 0;        ///< overlaps up to this are forgiven
  std::size_t sort_bytes = 0;       ///< memory of each rule that has to sort rows
  const Timeline* names = nullptr;  ///< tables of names

  [[nodiscard]] std::string sort(const char* name) const {
    return fmt::format("{}: {}", group, name);
  }
  /// The row for people, and what is wrong: "measured: op 7 (schedule 0, ...) ends at ...".
  [[nodiscard]] std::string text(const RowName& row, const std::string& what) const {
    return fmt::format("{}: op {} (schedule {}, iteration {}, rank {}) {}", group, row.op,
                       row.schedule, row.iteration, row.rank, what);
  }
  template <typename... Args>
  void add(Diagnostics& findings, const char* name, const RowName& row,
           fmt::format_string<Args...> format, Args&&... args) const {
    findings.add(sort(name), text(row, fmt::format(format, std::forward<Args>(args)...)));
  }
  /// Likewise, for a rule that does not meet its rows in order.
  template <typename... Args>
  void add(UnorderedFindings& findings, const char* name, const RowName& row,
           fmt::format_string<Args...> format, Args&&... args) const {
    const std::string kind = sort(name);
    findings.add(kind, row.op,
                 findings.keeps(kind, row.op)
                     ? text(row, fmt::format(format, std::forward<Args>(args)...))
                     : std::string{});
  }
};

/// Longest time and largest size that a row may state: exact in a double, and safe to add up.
inline constexpr std::int64_t kLargestValue = std::int64_t{1} << 53;

/// Checks a row by itself: indices lie in their tables, ids and times in their ranges. False,
/// and a finding, if other rules cannot rely on it.
[[nodiscard]] bool check_values(const TimelineRow& row, const CheckContext& context,
                                Diagnostics& findings);

}  // namespace longhaul::trace
