#include "compress/optimizer/optimizer_rows.hpp"

#include <algorithm>
#include <cmath>

#include "compress/kernels/cpu_level.hpp"

// Weights, moments and gradient are apart: one iteration of the loop below needs no other. Clang
// warns where a loop is left as it is, as without optimization.
#if defined(__clang__)
#define LONGHAUL_NO_ALIAS
#else
#define LONGHAUL_NO_ALIAS _Pragma("GCC ivdep")
#endif

namespace longhaul::compress {
namespace {

/// A stretch of numbers and what belongs to them.
struct Row {
  float* weights;
  float* first;
  float* second;
  const float* gradient;
};

template <OptimizerRule kRule>
LONGHAUL_ALWAYS_INLINE void step_number(const StepRows& rows, const Row& row, std::size_t i) {
  const float gradient = rows.scale * row.gradient[i];
  if constexpr (kRule == OptimizerRule::sgd) {
    row.weights[i] -= rows.learning_rate * gradient;
  } else if constexpr (kRule == OptimizerRule::momentum) {
    row.first[i] = rows.settings.momentum * row.first[i] + gradient;
    row.weights[i] -= rows.learning_rate * row.first[i];
  } else if constexpr (kRule == OptimizerRule::nesterov) {
    row.first[i] = rows.settings.momentum * row.first[i] + gradient;
    row.weights[i] -= rows.learning_rate * (gradient + rows.settings.momentum * row.first[i]);
  } else {
    const float beta1 = rows.settings.beta1, beta2 = rows.settings.beta2;
    row.first[i] = beta1 * row.first[i] + (1 - beta1) * gradient;
    row.second[i] = beta2 * row.second[i] + (1 - beta2) * gradient * gradient;
    const float root = std::sqrt(row.second[i]) * rows.adam.correction + rows.settings.epsilon;
    row.weights[i] = row.weights[i] * rows.adam.kept - rows.adam.rate * row.first[i] / root;
  }
}

template <OptimizerRule kRule>
LONGHAUL_ALWAYS_INLINE void skip_number(const StepRows& rows, const Row& row, std::size_t i,
                                        const SkippedSteps& skipped) {
  if constexpr (kRule == OptimizerRule::momentum || kRule == OptimizerRule::nesterov) {
    row.weights[i] -= skipped.moved * row.first[i];
    row.first[i] *= skipped.first_kept;
  } else if constexpr (kRule == OptimizerRule::adamw) {
    const float scaled = std::sqrt(row.second[i]) * skipped.center;
    const float below = 1 / (scaled + rows.settings.epsilon);
    const float y = -scaled * below;
    float series = skipped.moments[SkippedSteps::kTerms - 1];
    for (int p = SkippedSteps::kTerms - 2; p >= 0; --p)
      series = series * y + skipped.moments[static_cast<std::size_t>(p)];
    row.weights[i] = row.weights[i] * skipped.weight_kept - row.first[i] * series * below;
    row.first[i] *= skipped.first_kept;
    row.second[i] *= skipped.second_kept;
  }
}

/// A row that no sum has touched yet has no moments: only its weights decay.
LONGHAUL_ALWAYS_INLINE bool has_moments(const Row& row, std::size_t size) {
  bool any = false;
  for (std::size_t i = 0; i < size; ++i) any = any || row.first[i] != 0 || row.second[i] != 0;
  return any;
}

/// AdamW at a zero gradient, step by step, in double precision. Of a block of 16 at most: what a
/// step needs is read once for all of it.
LONGHAUL_ALWAYS_INLINE void skip_by_steps(const StepRows& rows, const Row& row, std::size_t size,
                                          const SkippedSteps& skipped) {
  if (!has_moments(row, size)) {
    for (std::size_t i = 0; i < size; ++i) row.weights[i] *= skipped.weight_kept;
    return;
  }
  constexpr std::size_t kMost = 16;
  double weights[kMost] = {}, firsts[kMost] = {}, roots[kMost] = {};
  for (std::size_t i = 0; i < size; ++i) {
    weights[i] = row.weights[i];
    firsts[i] = row.first[i];
    roots[i] = std::sqrt(static_cast<double>(row.second[i]));
  }
  const auto epsilon = static_cast<double>(rows.settings.epsilon);
  const std::int64_t last = std::min(skipped.to, skipped.from + rows.skipped->reach());
  double first_left = 1, root_left = 1;
  for (std::int64_t step = skipped.from + 1; step <= last; ++step) {
    const AdamFactors& factors = rows.skipped->factors(step);
    first_left *= static_cast<double>(rows.settings.beta1);
    root_left *= rows.skipped->root_kept();
    const double rate = static_cast<double>(factors.rate) * first_left;
    const double correction = static_cast<double>(factors.correction) * root_left;
    const auto kept = static_cast<double>(factors.kept);
    for (std::size_t i = 0; i < kMost; ++i)
      weights[i] = weights[i] * kept - rate * firsts[i] / (roots[i] * correction + epsilon);
  }
  const double later = rows.skipped->weight_kept_since(last);
  for (std::size_t i = 0; i < size; ++i) {
    row.weights[i] = static_cast<float>(weights[i] * later);
    row.first[i] *= skipped.first_kept;
    row.second[i] *= skipped.second_kept;
  }
}

template <OptimizerRule kRule>
LONGHAUL_ALWAYS_INLINE void skip_row(const StepRows& rows, const Row& row, std::size_t size,
                                     const SkippedSteps& skipped) {
  if (skipped.from == skipped.to) return;
  if (kRule == OptimizerRule::adamw && skipped.by_steps)
    return skip_by_steps(rows, row, size, skipped);
  if (size == 16) {
    LONGHAUL_NO_ALIAS
    for (std::size_t i = 0; i < 16; ++i) skip_number<kRule>(rows, row, i, skipped);
  } else {
    for (std::size_t i = 0; i < size; ++i) skip_number<kRule>(rows, row, i, skipped);
  }
}

LONGHAUL_ALWAYS_INLINE Row row_at(const StepRows& rows, std::size_t place, const float* gradient) {
  return {rows.weights + place, rows.first != nullptr ? rows.first + place : nullptr,
          rows.second != nullptr ? rows.second + place : nullptr, gradient};
}

LONGHAUL_ALWAYS_INLINE void fetch(const Row& row, const std::uint32_t* last_step) {
  __builtin_prefetch(row.weights, 1);
  if (row.first != nullptr) __builtin_prefetch(row.first, 1);
  if (row.second != nullptr) __builtin_prefetch(row.second, 1);
  if (last_step != nullptr) __builtin_prefetch(last_step, 1);
}

template <OptimizerRule kRule>
LONGHAUL_ALWAYS_INLINE void step_set(const StepRows& all, const SparseSet& sum) {
  constexpr std::size_t kAhead = 24;  ///< blocks that are on their way from memory
  const StepRows rows = all;          // no number that is written is one of its factors
  const auto block = static_cast<std::size_t>(sum.block);
  const std::size_t count = sum.blocks.size();
  const auto now = static_cast<std::uint32_t>(rows.skipped->steps() + 1);
  for (std::size_t b = 0; b < count; ++b) {
    const std::uint32_t ahead = sum.blocks[std::min(b + kAhead, count - 1)];
    std::uint32_t* const last = rows.last_step;
    fetch(row_at(rows, ahead * block, nullptr), last != nullptr ? last + ahead : nullptr);
    const std::uint32_t at = sum.blocks[b];
    const Row row = row_at(rows, at * block, sum.values.data() + b * block);
    const std::size_t size = sum.size_of(at);
    if (last != nullptr) {
      skip_row<kRule>(rows, row, size, rows.table->since(last[at]));
      last[at] = now;
    }
    if (size == 16) {
      LONGHAUL_NO_ALIAS
      for (std::size_t i = 0; i < 16; ++i) step_number<kRule>(rows, row, i);
    } else {
      for (std::size_t i = 0; i < size; ++i) step_number<kRule>(rows, row, i);
    }
  }
}

LONGHAUL_ALWAYS_INLINE void step_set_by_rule(const StepRows& rows, const SparseSet& sum) {
  switch (rows.settings.rule) {
    case OptimizerRule::sgd: return step_set<OptimizerRule::sgd>(rows, sum);
    case OptimizerRule::momentum: return step_set<OptimizerRule::momentum>(rows, sum);
    case OptimizerRule::nesterov: return step_set<OptimizerRule::nesterov>(rows, sum);
    case OptimizerRule::adamw: return step_set<OptimizerRule::adamw>(rows, sum);
  }
}

template <OptimizerRule kRule>
LONGHAUL_ALWAYS_INLINE void step_dense(const StepRows& rows, const Row& row, std::size_t count) {
  constexpr std::size_t kStretch = 64, kLine = 16, kAhead = 512;
  const StepRows own = rows;  // no number that is written is one of its factors
  std::size_t at = 0;
  for (; at + kStretch <= count; at += kStretch) {
    for (std::size_t i = at + kAhead; i < at + kAhead + kStretch; i += kLine) {
      fetch({row.weights + i, row.first != nullptr ? row.first + i : nullptr,
             row.second != nullptr ? row.second + i : nullptr, nullptr},
            nullptr);
      __builtin_prefetch(row.gradient + i);
    }
    LONGHAUL_NO_ALIAS
    for (std::size_t i = at; i < at + kStretch; ++i) step_number<kRule>(own, row, i);
  }
  for (; at < count; ++at) step_number<kRule>(own, row, at);
}

LONGHAUL_ALWAYS_INLINE void step_dense_by_rule(const StepRows& rows, const Row& row,
                                               std::size_t count) {
  switch (rows.settings.rule) {
    case OptimizerRule::sgd: return step_dense<OptimizerRule::sgd>(rows, row, count);
    case OptimizerRule::momentum: return step_dense<OptimizerRule::momentum>(rows, row, count);
    case OptimizerRule::nesterov: return step_dense<OptimizerRule::nesterov>(rows, row, count);
    case OptimizerRule::adamw: return step_dense<OptimizerRule::adamw>(rows, row, count);
  }
}

void set_plain(const StepRows& rows, const SparseSet& sum) { step_set_by_rule(rows, sum); }
LONGHAUL_TARGET_AVX2 void set_avx2(const StepRows& rows, const SparseSet& sum) {
  step_set_by_rule(rows, sum);
}
LONGHAUL_TARGET_AVX512 void set_avx512(const StepRows& rows, const SparseSet& sum) {
  step_set_by_rule(rows, sum);
}
void dense_plain(const StepRows& rows, const Row& row, std::size_t count) {
  step_dense_by_rule(rows, row, count);
}
LONGHAUL_TARGET_AVX2 void dense_avx2(const StepRows& rows, const Row& row, std::size_t count) {
  step_dense_by_rule(rows, row, count);
}
LONGHAUL_TARGET_AVX512 void dense_avx512(const StepRows& rows, const Row& row, std::size_t count) {
  step_dense_by_rule(rows, row, count);
}

}  // namespace

void SkippedTable::start(const CatchUp& skipped) {
  skipped_ = &skipped;
  ++now_;
  first_ = static_cast<std::uint32_t>(skipped.forgotten());
  const auto steps = static_cast<std::size_t>(skipped.steps() - skipped.forgotten()) + 1;
  stamps_.resize(steps);
  entries_.resize(steps);
}

const SkippedSteps& SkippedTable::computed(std::uint32_t last) {
  stamps_[last - first_] = now_;
  return entries_[last - first_] = skipped_->since(last);
}

void step_blocks(const StepRows& rows, const SparseSet& sum) {
  switch (cpu_level()) {
    case CpuLevel::plain: return set_plain(rows, sum);
    case CpuLevel::avx2: return set_avx2(rows, sum);
    case CpuLevel::avx512: return set_avx512(rows, sum);
  }
}

void step_all(const StepRows& rows, const float* gradient, std::size_t count) {
  const Row row = row_at(rows, 0, gradient);
  switch (cpu_level()) {
    case CpuLevel::plain: return dense_plain(rows, row, count);
    case CpuLevel::avx2: return dense_avx2(rows, row, count);
    case CpuLevel::avx512: return dense_avx512(rows, row, count);
  }
}

void catch_up_row(const StepRows& rows, std::size_t place, std::size_t size,
                  const SkippedSteps& skipped) {
  const Row row = row_at(rows, place, nullptr);
  switch (rows.settings.rule) {
    case OptimizerRule::sgd: return;
    case OptimizerRule::momentum:
      return skip_row<OptimizerRule::momentum>(rows, row, size, skipped);
    case OptimizerRule::nesterov:
      return skip_row<OptimizerRule::nesterov>(rows, row, size, skipped);
    case OptimizerRule::adamw: return skip_row<OptimizerRule::adamw>(rows, row, size, skipped);
  }
}

}  // namespace longhaul::compress
