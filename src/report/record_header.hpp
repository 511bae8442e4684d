#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace longhaul::report {

/// The first fields of a record, about the record itself. Empty ones are left out.
struct RecordHeader {
  std::string benchmark{};  ///< "bench_link"
  std::string numbers{};    ///< "measured" or "simulated"
  std::string creator{};    ///< "longhaul": the record adds the version
  std::optional<std::string>
      command_line{};  ///< with the commit; records about a file have neither
};

/// The first fields of every record, in this order: schema_version, benchmark, numbers, creator,
/// git_commit, command_line.
[[nodiscard]] nlohmann::ordered_json record_header(const RecordHeader& header = {});

}  // namespace longhaul::report
