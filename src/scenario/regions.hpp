#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.hpp"

namespace longhaul::scenario {

/// The measurement from one region to another.
struct RegionPair {
  Duration round_trip{};
  Bandwidth throughput;
};

/// Round-trip times and throughputs of ordered pairs of cloud regions, named as in "azure:eastus".
class RegionTable {
public:
  /// CSV whose first line names the columns; src_region, dst_region, rtt_avg_ms and
  /// throughput_received_bps are needed, others are left alone. Lines that are empty or begin with
  /// # are skipped. Bounded: 4 MiB, 1,000 regions. Throws Error "source:line: ...".
  [[nodiscard]] static RegionTable parse(std::string_view csv, const std::string& source);
  /// The same from a file; refuses what is no regular file.
  [[nodiscard]] static RegionTable load(const std::filesystem::path& file);
  /// The table that comes with the program: eight regions of three clouds on three continents
  /// (docs/scenario.md has the source).
  [[nodiscard]] static const RegionTable& built_in();

  /// The columns that are needed, as CSV: parse() of it gives the same table.
  [[nodiscard]] std::string text() const;

  /// nullptr where the pair was not measured.
  [[nodiscard]] const RegionPair* find(const std::string& from, const std::string& to) const;
  [[nodiscard]] bool knows(const std::string& region) const { return regions_.contains(region); }
  [[nodiscard]] const std::set<std::string>& regions() const { return regions_; }
  /// The file's name, or what the built-in table is called in messages.
  [[nodiscard]] const std::string& source() const { return source_; }

private:
  std::string source_;
  std::map<std::pair<std::string, std::string>, RegionPair> pairs_;
  std::set<std::string> regions_;
};

}  // namespace longhaul::scenario
