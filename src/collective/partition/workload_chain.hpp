#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

/// Dimensions of an operator's workload, as in Centauri's table 3: of a matrix product
/// [A, B] x [B, C], and of the others [A, B], A being the tokens.
#define LONGHAUL_WORKLOAD_DIMENSIONS(X) X(a, "A") X(b, "B") X(c, "C")
LONGHAUL_LISTED_ENUM(WorkloadDimension, LONGHAUL_WORKLOAD_DIMENSIONS);

/// The types of table 3: a contraction, whose parts are added up; none, which is not cut; others.
#define LONGHAUL_DIMENSION_TYPES(X) X(contraction, "CD") X(none, "ND") X(other, "OD")
LONGHAUL_LISTED_ENUM(DimensionType, LONGHAUL_DIMENSION_TYPES);

/// Which part of a matrix a piece of an operator takes or makes: rows (tokens), columns, all of it,
/// or a summand of it.
enum class WorkloadPart : std::uint8_t { rows, columns, whole, summand };

/// How an operator is cut. Of two that follow each other the second takes the parts that the first
/// makes: rows or columns of both.
struct WorkloadCut {
  WorkloadDimension dimension = WorkloadDimension::a;
  DimensionType type = DimensionType::other;
  WorkloadPart takes = WorkloadPart::rows, makes = WorkloadPart::rows;
};

/// Those of an operator's F, D or W (table 3). Of [A, B] x [B, C] the F adds up over B, the D over
/// C and the W over A. SwiGLU, normalizations and attention are not cut along a row.
[[nodiscard]] std::vector<WorkloadCut> workload_cuts(const Operator& of, BlockKind work);
[[nodiscard]] bool agree(const WorkloadCut& before, const WorkloadCut& next);

/// The operator of an operation; nullptr: it has none.
[[nodiscard]] const Operator* operator_of(const IterationPlan& plan, const Operation& operation);

/// A chain of dependent operators that can be cut along with a communication.
struct WorkloadChain {
  WorkloadCut first;  ///< of the first operator
  std::vector<OperationId> operations;
};
/// Along each dimension of the operation the chain from it on, one operation of a block after the
/// other, until its cost reaches `enough`, the next operator cannot be cut in the same parts, or
/// waits for a communication of its own. Cuts of type ND make none; the parts of a contraction (CD)
/// have to be added up, which ends a chain.
[[nodiscard]] std::vector<WorkloadChain> workload_chains(const IterationPlan& plan,
                                                         const StageWork& work, OperationId first,
                                                         Duration enough);

/// The operation with which a communication is cut: the first product that needs what it brings,
/// the last that makes what it moves; where there is no product the first user, or the last that
/// makes it. Nothing where there is none.
[[nodiscard]] std::optional<OperationId> partner_of(const IterationPlan& plan,
                                                    const StageWork& work,
                                                    const Communication& communication);

/// Has what such a communication moves that dimension? Weights and their gradients have no tokens.
[[nodiscard]] bool moves_dimension(Traffic traffic, WorkloadDimension dimension);

/// The first `most` operations of the longest chain along a dimension that is moved and no
/// contraction, or the operation alone.
[[nodiscard]] std::vector<OperationId> chain_from(const IterationPlan& plan, const StageWork& work,
                                                  OperationId first, int most, Traffic traffic);

}  // namespace longhaul::collective
