#include "collective/rules/operation_rule.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace longhaul::collective {
namespace {

__extension__ using Wide = __int128;

void require_sound(const OperationCosts& costs) {
  if (costs.inter_size < 1 || costs.intra_size < 1 || costs.most_chunks < 1)
    fail("groups of {} and {} members in at most {} chunks (each is at least 1).", costs.inter_size,
         costs.intra_size, costs.most_chunks);
  for (const Duration cost :
       {costs.computation, costs.communication, costs.inter, costs.intra, costs.independent})
    if (cost < Duration::zero()) fail("a cost of {} ns (0 is the least).", cost.count());
}

Fraction fraction(std::int64_t numerator, std::int64_t denominator) {
  const std::int64_t common = std::gcd(numerator, denominator);
  return {numerator / common, denominator / common};
}

/// Lines 3 to 7: as many as the independent computation fits in, at most.
std::vector<Fraction> even_parts(const OperationCosts& costs) {
  std::int64_t chunks = costs.most_chunks;
  if (costs.independent > Duration::zero()) {
    const std::int64_t part = costs.independent.count();
    chunks = std::min(chunks, costs.communication.count() / part +
                                  (costs.communication.count() % part == 0 ? 0 : 1));
  }
  return std::vector<Fraction>(static_cast<std::size_t>(chunks), Fraction{1, chunks});
}

/// Lines 9 to 22.
std::vector<Fraction> group_parts(const OperationCosts& costs) {
  const std::int64_t inter = costs.inter_size, intra = costs.intra_size, world = inter * intra;
  std::vector<std::int64_t> parts;
  // The computation of one group's share outlasts what the whole node sends to others.
  const bool outlasts = static_cast<Wide>(costs.computation.count()) >
                        static_cast<Wide>(inter) * intra * costs.inter.count();
  if (costs.independent > costs.inter)
    parts = {inter, world - inter};
  else if (outlasts)
    parts = {intra, world - intra};
  else
    parts = {intra, inter - 1, world - (inter + intra - 1)};
  std::erase(parts, 0);
  std::vector<Fraction> fractions;
  for (const std::int64_t part : parts) fractions.push_back(fraction(part, world));
  return fractions;
}

}  // namespace

std::vector<Fraction> operation_granularity(const OperationCosts& costs) {
  require_sound(costs);
  if (costs.independent >= costs.communication) return {Fraction{}};
  return costs.grouped ? group_parts(costs) : even_parts(costs);
}

}  // namespace longhaul::collective
