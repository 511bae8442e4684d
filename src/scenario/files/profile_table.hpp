#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace longhaul::scenario {

/// Limits of a profile's rows, of an operator's calls, and of one call (18 minutes).
inline constexpr std::size_t kMostProfileRows = 200'000;
inline constexpr std::int64_t kMostProfileCalls = 1 << 14;
inline constexpr Duration kLongestProfileCall{std::int64_t{1} << 40};

/// A line of a profile: an operator of a block, and how long one call of it takes.
struct ProfileRow {
  std::string part, block, operation, shape, type;
  std::int64_t calls = 1;
  Duration median{};
  std::size_t line = 0;
};

/// A profile of operators: the columns part, block, operator, shape, type, calls and median_ns of a
/// CSV, in any order; others are left alone (docs/profile.md).
struct ProfileTable {
  std::string source;  ///< for messages
  std::vector<ProfileRow> rows;
  /// The row of that block; nullptr: none.
  [[nodiscard]] const ProfileRow* find(const ProfileRow& wanted) const;
  /// That, or one of the same operator, shape and type in another block; nullptr: none.
  [[nodiscard]] const ProfileRow* find_anywhere(const ProfileRow& wanted) const;
};
/// Throws Error "source:line: ..." for a column that is missing and a value that is none.
[[nodiscard]] ProfileTable read_profile_table(std::string_view csv, const std::string& source);

/// Measured collectives: the columns operation, ranks, nodes, size_bytes, median_ns of a CSV.
struct CollectiveRow {
  std::string operation;
  std::int64_t ranks = 1, nodes = 1, size = 0;
  Duration median{};
};
struct CollectiveTable {
  std::string source;
  std::vector<CollectiveRow> rows;  ///< by operation, ranks, nodes and size
  /// Of a size between measured ones by a line through its neighbours; of one outside by the rate
  /// of the nearest, up to 4 times beyond; nullopt: neither.
  [[nodiscard]] std::optional<Duration> time(std::string_view operation, std::int64_t ranks,
                                             std::int64_t nodes, std::int64_t size) const;
};
[[nodiscard]] CollectiveTable read_collective_table(std::string_view csv,
                                                    const std::string& source);

/// Kernels of operators: the columns operator, kernel, position, median_ns, gap_ns of a CSV.
/// `operation` is the operator's name, or its name and its shape.
struct TaskRow {
  std::string operation, kernel;
  std::int64_t position = 0;
  Duration median{}, gap{};  ///< gap: after it, before the next
};
struct TaskTable {
  std::vector<TaskRow> rows;  ///< by operation and position
  /// The tasks of "operation shape", or of "operation"; empty: not known.
  [[nodiscard]] std::vector<TaskRow> of(const std::string& operation,
                                        const std::string& shape) const;
};
[[nodiscard]] TaskTable read_task_table(std::string_view csv, const std::string& source);

}  // namespace longhaul::scenario
