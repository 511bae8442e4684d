#include "trace/timeline/timeline.hpp"

#include <array>

#include "base/error.hpp"

namespace longhaul {
namespace {

constexpr std::array<const char*, kRowKinds> kRowKindNames{
    "F", "B", "D", "W", "R", "send", "recv", "all_gather", "reduce_scatter", "all_reduce"};
constexpr std::array<const char*, kRowLegs> kRowLegNames{"whole", "scatter", "wan", "gather"};
constexpr std::array<const char*, kBoundKinds> kBoundKindNames{"start", "dependency", "lane",
                                                               "resource", "rendezvous"};

}  // namespace

const char* name_of(RowKind kind) {
  const auto at = index(kind);
  LONGHAUL_ASSERT(at < kRowKindNames.size(), "row kind {}", at);
  return kRowKindNames[at];
}

const char* name_of(RowLeg leg) {
  const auto at = index(leg);
  LONGHAUL_ASSERT(at < kRowLegNames.size(), "leg {}", at);
  return kRowLegNames[at];
}

const char* name_of(BoundKind kind) {
  const auto at = index(kind);
  LONGHAUL_ASSERT(at < kBoundKindNames.size(), "bound kind {}", at);
  return kBoundKindNames[at];
}

}  // namespace longhaul
