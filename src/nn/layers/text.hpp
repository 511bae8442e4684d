#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/ids.hpp"
#include "nn/layers/shape.hpp"

namespace longhaul::nn {

/// The tokens that a microbatch reads and is to predict; one number a token.
struct MicrobatchText {
  std::vector<std::int32_t> tokens, targets;
};

/// The text of (iteration, replica, microbatch); the same on every rank.
using TextSource = std::function<MicrobatchText(int, ReplicaId, MicrobatchId)>;

/// Text that follows from a seed and has something to learn: a Markov chain of order 2. Half of all
/// tokens are the one that follows the token before, four tenths the one that follows it given the
/// token before that (by its remainder modulo 8), the rest is any. No table: who follows whom is a
/// hash, so that a vocabulary of any size costs nothing. Integers and exact comparisons alone: the
/// same text on every machine.
class SyntheticText {
public:
  SyntheticText(const ModelShape& shape, std::uint64_t seed);

  /// Fresh sequences for each; targets are the tokens one further on.
  [[nodiscard]] MicrobatchText operator()(int iteration, ReplicaId replica,
                                          MicrobatchId microbatch) const;
  /// Mean loss, in nats a token, of who knows the chain: no model does better for long.
  [[nodiscard]] double entropy() const;

private:
  [[nodiscard]] std::int32_t usual(std::int32_t before) const;
  [[nodiscard]] std::int32_t usual(std::int32_t before, std::int32_t before_that) const;

  int batch_, sequence_;
  std::int32_t vocabulary_;
  std::uint64_t seed_;
};

}  // namespace longhaul::nn
