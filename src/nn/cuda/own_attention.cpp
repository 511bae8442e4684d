#include "nn/cuda/own_attention.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "nn/cuda/kernels/kernels.hpp"

namespace longhaul::nn {
namespace {

constexpr int kLeastQueries = 128;

constexpr int padded(int keys) { return (keys + 7) / 8 * 8; }

/// The part of a view from number `first` on.
ArrayView part_from(ArrayView view, std::size_t first) {
  return view.part(first, view.count - first);
}

}  // namespace

/// One sequence of a microbatch, and where its heads lie. Query heads of one place in their groups
/// stand `group` apart, as many as there are key heads: those are multiplied at once.
struct OwnAttention::Sequence {
  Sequence(const AttentionShape& all, int number, ArrayView qkv_of_all, ArrayView out_of_all,
           ArrayView sums_of_all)
      : shape{1, all.sequence, all.heads, all.kv_heads, all.head_size} {
    const auto place = to_size(number);
    const std::size_t sums = shape.tokens() * to_size(shape.heads);
    qkv = part(qkv_of_all, place, shape.tokens() * shape.width());
    out = part(out_of_all, place, sums * head_size());
    log_sums = part(sums_of_all, place, sums);
  }
  static ArrayView part(ArrayView all, std::size_t at, std::size_t count) {
    return all.part(at * count, count);
  }

  [[nodiscard]] std::size_t head_size() const { return to_size(shape.head_size); }
  [[nodiscard]] int group() const { return shape.heads / shape.kv_heads; }
  /// First columns of K and of V in a row of Q, K and V.
  [[nodiscard]] std::size_t k_column() const { return to_size(shape.heads) * head_size(); }
  [[nodiscard]] std::size_t v_column() const {
    return to_size(shape.heads + shape.kv_heads) * head_size();
  }
  [[nodiscard]] Storage queries() const {
    return {static_cast<std::int64_t>(shape.width()), group() * shape.head_size};
  }
  [[nodiscard]] Storage keys() const {
    return {static_cast<std::int64_t>(shape.width()), shape.head_size};
  }
  [[nodiscard]] Storage outputs() const {
    return {static_cast<std::int64_t>(k_column()), group() * shape.head_size};
  }
  [[nodiscard]] Storage sums()
      const {  ///< of gradients of K and V: [kv_heads, sequence, head_size]
    return {shape.head_size, std::int64_t{shape.sequence} * shape.head_size};
  }

  AttentionShape shape;
  ArrayView qkv, out, log_sums;
};

/// Queries [first, first + queries) of the heads `place`, place + group, ...
struct OwnAttention::Block {
  int first, queries, place;

  [[nodiscard]] int keys() const { return first + queries; }
  [[nodiscard]] Storage scores() const {
    return {padded(keys()), std::int64_t{queries} * padded(keys())};
  }
  [[nodiscard]] ScoreBlock of(const Sequence& sequence) const {
    return {first,
            queries,
            keys(),
            padded(keys()),
            sequence.shape.kv_heads,
            place,
            sequence.group(),
            sequence.shape.sequence,
            1 / std::sqrt(static_cast<float>(sequence.shape.head_size))};
  }
  /// Part of a view whose rows are `row` numbers long.
  [[nodiscard]] ArrayView queries_in(ArrayView view, std::size_t row, const Sequence& of) const {
    return part_from(view, to_size(first) * row + to_size(place) * of.head_size());
  }
};

struct OwnAttention::Gradients {
  ArrayView dout, dqkv;
  ArrayView dots;
  ArrayView scores, dweights;      ///< f32
  ArrayView weights, dscores;      ///< bf16
  ArrayView sum_of_dk, sum_of_dv;  ///< f32
};

int OwnAttention::queries_of_block(const AttentionShape& shape, std::size_t bytes_of_score) const {
  const std::size_t row =
      to_size(shape.kv_heads) * to_size(padded(shape.sequence)) * bytes_of_score;
  const auto rows = static_cast<int>(std::min<std::size_t>(kScratchBytes / row, 1U << 20U));
  const int whole = std::max(rows / kLeastQueries, 1) * kLeastQueries;
  return std::min({whole, most_queries_, shape.sequence});
}

void OwnAttention::forward(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                           ArrayView log_sums) {
  const int queries = queries_of_block(shape, 6);
  const std::size_t most =
      to_size(shape.kv_heads) * to_size(queries) * to_size(padded(shape.sequence));
  const Scratch scores{pool_, most, NumberType::f32, "attention's scores"};
  const Scratch weights{pool_, most, NumberType::bf16, "attention's weights"};
  for (int number = 0; number < shape.batch; ++number) {
    const Sequence of{shape, number, qkv, out, log_sums};
    for (int first = 0; first < shape.sequence; first += queries)
      for (int place = 0; place < of.group(); ++place)
        forward(of, {first, std::min(queries, shape.sequence - first), place}, scores.view(),
                weights.view());
  }
}

void OwnAttention::forward(const Sequence& of, const Block& block, ArrayView scores,
                           ArrayView weights) {
  const int heads = of.shape.kv_heads;
  Product product{{block.queries, block.keys(), of.shape.head_size, false, true},
                  heads,
                  of.queries(),
                  of.keys(),
                  block.scores()};
  gemms_.multiply(product, block.queries_in(of.qkv, of.shape.width(), of),
                  part_from(of.qkv, of.k_column()), scores);
  causal_softmax(stream_, block.of(of), scores, weights, of.log_sums);
  product = {{block.queries, of.shape.head_size, block.keys()},
             heads,
             block.scores(),
             of.keys(),
             of.outputs()};
  gemms_.multiply(product, weights, part_from(of.qkv, of.v_column()),
                  block.queries_in(of.out, of.k_column(), of));
}

void OwnAttention::backward(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                            ArrayView log_sums, ArrayView dout, ArrayView dqkv) {
  const int queries = queries_of_block(shape, 12);
  const std::size_t most =
      to_size(shape.kv_heads) * to_size(queries) * to_size(padded(shape.sequence));
  const std::size_t of_keys =
      to_size(shape.kv_heads) * to_size(shape.sequence) * to_size(shape.head_size);
  const std::size_t of_sums = to_size(shape.heads) * to_size(shape.sequence);
  constexpr auto kF32 = NumberType::f32;
  const Scratch scores{pool_, most, kF32, "attention's scores"},
      dweights{pool_, most, kF32, "the gradient of attention's weights"},
      weights{pool_, most, NumberType::bf16, "attention's weights"},
      dscores{pool_, most, NumberType::bf16, "the gradient of attention's scores"},
      dk{pool_, of_keys, kF32, "the gradient of keys"},
      dv{pool_, of_keys, kF32, "the gradient of values"},
      dots{pool_, of_sums, kF32, "attention's sums"};
  for (int number = 0; number < shape.batch; ++number) {
    const Sequence of{shape, number, qkv, out, log_sums};
    const Gradients gradients{Sequence::part(dout, to_size(number), of.out.count),
                              Sequence::part(dqkv, to_size(number), of.qkv.count),
                              dots.view(),
                              scores.view(),
                              dweights.view(),
                              weights.view(),
                              dscores.view(),
                              dk.view(),
                              dv.view()};
    head_dots(stream_, of.shape, of.out, gradients.dout, dots.view());
    // The last block sees all keys: it overwrites the sums that the others add to.
    const int blocks = (shape.sequence + queries - 1) / queries;
    for (int number_of_block = blocks - 1; number_of_block >= 0; --number_of_block)
      for (int place = 0; place < of.group(); ++place) {
        const int first = number_of_block * queries;
        backward(of, {first, std::min(queries, shape.sequence - first), place}, gradients,
                 number_of_block + 1 < blocks || place > 0);
      }
    scatter_heads(stream_, of.shape, dk.view(), of.k_column(), gradients.dqkv);
    scatter_heads(stream_, of.shape, dv.view(), of.v_column(), gradients.dqkv);
  }
}

void OwnAttention::backward(const Sequence& of, const Block& block, const Gradients& gradients,
                            bool accumulate) {
  const int heads = of.shape.kv_heads, head_size = of.shape.head_size;
  const ArrayView queries = block.queries_in(of.qkv, of.shape.width(), of);
  const ArrayView dout = block.queries_in(gradients.dout, of.k_column(), of);
  const ArrayView keys = part_from(of.qkv, of.k_column()),
                  values = part_from(of.qkv, of.v_column());
  const Gemm square{block.queries, block.keys(), head_size, false, true};
  const Gemm to_keys{block.keys(), head_size, block.queries, true, false, accumulate};
  gemms_.multiply({square, heads, of.queries(), of.keys(), block.scores()}, queries, keys,
                  gradients.scores);
  gemms_.multiply({square, heads, of.outputs(), of.keys(), block.scores()}, dout, values,
                  gradients.dweights);
  causal_softmax_gradient(stream_, block.of(of), gradients.scores, gradients.dweights, of.log_sums,
                          gradients.dots, gradients.weights, gradients.dscores);
  gemms_.multiply({to_keys, heads, block.scores(), of.outputs(), of.sums()}, gradients.weights,
                  dout, gradients.sum_of_dv);
  gemms_.multiply({to_keys, heads, block.scores(), of.queries(), of.sums()}, gradients.dscores,
                  queries, gradients.sum_of_dk);
  gemms_.multiply(
      {{block.queries, head_size, block.keys()}, heads, block.scores(), of.keys(), of.queries()},
      gradients.dscores, keys, block.queries_in(gradients.dqkv, of.shape.width(), of));
}

}  // namespace longhaul::nn
