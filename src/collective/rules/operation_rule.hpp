#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace longhaul::collective {

/// A part of a collective's workload, in lowest terms.
struct Fraction {
  std::int64_t numerator = 1, denominator = 1;
  friend bool operator==(const Fraction&, const Fraction&) = default;
};

/// What Centauri's Algorithm 1 (section 3.2.1) decides by.
struct OperationCosts {
  Duration computation{};    ///< what depends on the collective
  Duration communication{};  ///< the whole collective
  Duration inter{};          ///< its part between nodes
  Duration intra{};          ///< its part inside them; the algorithm reads it nowhere
  Duration independent{};    ///< computation that needs nothing of it
  int inter_size = 1;        ///< members of a group between nodes
  int intra_size = 1;        ///< members of a group inside a node
  int most_chunks = 4;
  bool grouped = false;  ///< partitioned into these two groups
};

/// In which parts the collective's workload is cut; they add up to 1. {1}: it is not cut. A number
/// of chunks that is no whole one is rounded up; parts of size zero (groups of one member) are left
/// out. Throws Error where a size or `most_chunks` is below 1, or a time below 0.
[[nodiscard]] std::vector<Fraction> operation_granularity(const OperationCosts& costs);

}  // namespace longhaul::collective
