#pragma once

#include <optional>
#include <vector>

#include "collective/overlap/overlaps.hpp"
#include "planner/overlap/overlap_decisions.hpp"
#include "planner/overlap/overlap_limits.hpp"

namespace longhaul::planner {

/// How far a search goes: the scenario's sharding, or all that it may be run with.
enum class OverlapScope : std::uint8_t { as_given, joint };

/// A variant by what it is made of: indices into shardings() and orders() of its space.
struct VariantPlace {
  std::size_t sharding = 0, order = 0;
  CopySums sums = CopySums::of_chunk;
  friend bool operator==(const VariantPlace&, const VariantPlace&) = default;
};

/// The iterations that a search chooses among, before it decides on their communications. Those
/// with other groups of microbatches (L1, L2 of equation 2) are made when they are asked for.
class OverlapSpace {
public:
  /// `schedule` and `scenario` outlive it.
  OverlapSpace(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
               OverlapScope scope, const OverlapLimits& limits = {});

  /// None could be made: why.
  [[nodiscard]] const std::optional<Refusal>& why_empty() const { return why_; }
  /// Those made so far; the scenario's own first.
  [[nodiscard]] const std::vector<OverlapVariant>& variants() const { return variants_; }
  [[nodiscard]] CopySums sums_of(std::size_t variant) const { return places_[variant].sums; }
  /// Of each class of a variant: those of partition_options() that the limits allow.
  [[nodiscard]] const std::vector<std::vector<collective::Partition>>& options(
      std::size_t variant) const {
    return options_[variant];
  }
  /// L1 and L2 of the orders that are interleaved 1F1B; nullopt: the order as given, or breadth
  /// first.
  [[nodiscard]] const std::vector<std::optional<MicrobatchGroup>>& groups() const {
    return groups_;
  }
  /// The same decisions in another order of blocks; nothing where that has no such variant.
  [[nodiscard]] std::optional<OverlapDecisions> in_order(const OverlapDecisions& decisions,
                                                         std::size_t order);
  /// Of all variants: no order of blocks has another.
  [[nodiscard]] OverlapBound bound() const;

private:
  void add_orders(OverlapScope scope);
  void add_shardings(OverlapScope scope);
  std::optional<std::size_t> add(const VariantPlace& place);
  [[nodiscard]] std::optional<std::size_t> find_or_add(const VariantPlace& place);

  const Schedule& schedule_;
  const Scenario& scenario_;
  Arrangement arrangement_;
  OverlapLimits limits_;
  std::optional<Refusal> why_;
  std::vector<Parallel> shardings_;
  std::vector<Schedule> orders_;
  std::vector<std::optional<MicrobatchGroup>> groups_;  ///< by order
  std::vector<OverlapVariant> variants_;
  std::vector<VariantPlace> places_;  ///< by variant
  std::vector<std::vector<std::vector<collective::Partition>>> options_;
};

/// Partitions of the classes of `to`: those that `from` has of classes of the same kind; whole
/// where it has none.
[[nodiscard]] std::vector<collective::Partition> same_partitions(
    const OverlapVariant& to, const OverlapVariant& from,
    const std::vector<collective::Partition>& partitions);

/// Does the overlap divide weights as the scenario does? All-reduces and ZeRO-1 and 2, which gather
/// after the optimizer's step instead of before it, count as one.
[[nodiscard]] bool divides_as(const collective::Overlap& overlap, const Parallel& parallel);

}  // namespace longhaul::planner
