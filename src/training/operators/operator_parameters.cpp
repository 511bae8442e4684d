#include "training/operators/operator_parameters.hpp"

#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::training {
namespace {

struct Matrix {
  std::size_t rows = 0, columns = 0;
};

/// The place's part of `rows` rows, which begin at row `first`.
ShardRange rows_of(std::size_t first, std::size_t rows, std::size_t columns,
                   const TensorPlace& place) {
  const std::size_t part = rows / to_size(place.ranks);
  return {(first + part * to_size(place.place)) * columns, part * columns};
}

std::vector<ShardRange> columns_of(const Matrix& matrix, const TensorPlace& place) {
  const std::size_t part = matrix.columns / to_size(place.ranks);
  std::vector<ShardRange> ranges;
  for (std::size_t row = 0; row < matrix.rows; ++row)
    ranges.push_back({row * matrix.columns + part * to_size(place.place), part});
  return ranges;
}

/// Of consecutive groups of rows the place's part of each.
OperatorParameter by_rows(std::string name, std::initializer_list<std::size_t> groups,
                          std::size_t columns, const TensorPlace& place) {
  OperatorParameter made{std::move(name), 0, {}};
  std::size_t first = 0;
  for (const std::size_t rows : groups) {
    made.ranges.push_back(rows_of(first, rows, columns, place));
    first += rows;
  }
  made.whole = first * columns;
  return made;
}

OperatorParameter by_columns(std::string name, const Matrix& matrix, const TensorPlace& place) {
  return {std::move(name), matrix.rows * matrix.columns, columns_of(matrix, place)};
}

OperatorParameter whole(std::string name, std::size_t count) {
  return {std::move(name), count, {{0, count}}};
}

}  // namespace

std::size_t OperatorParameter::count() const {
  return std::accumulate(ranges.begin(), ranges.end(), std::size_t{0},
                         [](std::size_t sum, const ShardRange& each) { return sum + each.count; });
}

OperatorParameter parameter_of(const Operator& each, const nn::ModelShape& shape,
                               const TensorPlace& place) {
  const auto hidden = to_size(shape.hidden);
  const auto mlp = to_size(shape.intermediate);
  const auto keys = to_size(shape.kv_heads * shape.head_size());
  const auto vocabulary = to_size(shape.vocabulary);
  const auto named = [&](const char* what) { return fmt::format("layer {} {}", each.layer, what); };
  if (each.name == "attention_norm") return whole(named("attention.norm"), hidden);
  if (each.name == "feedforward_norm") return whole(named("feedforward.norm"), hidden);
  if (each.name == "qkv")
    return by_rows(named("attention.qkv"), {hidden, keys, keys}, hidden, place);
  if (each.name == "gate_up")
    return by_rows(named("feedforward.gate_up"), {mlp, mlp}, hidden, place);
  if (each.name == "output") return by_columns(named("attention.output"), {hidden, hidden}, place);
  if (each.name == "down") return by_columns(named("feedforward.down"), {hidden, mlp}, place);
  if (each.name == "embedding") return whole("embedding.table", vocabulary * hidden);
  if (each.name == "head_norm") return whole("head.norm", hidden);
  if (each.name == "head") return whole("head.output", vocabulary * hidden);
  return {};
}

void check_tensor_ranks(const nn::ModelShape& shape, const Parallel& parallel) {
  const auto require = [&](int number, const char* what) {
    if (number % parallel.tensor != 0)
      fail(
          "parallel.tensor = {} does not divide {} {} (each rank computes as many). Change "
          "either.",
          parallel.tensor, number, what);
  };
  require(shape.heads, "heads");
  require(shape.kv_heads, "key and value heads");
  require(shape.intermediate, "numbers of the MLP");
  if (parallel.sharding.sequence_parallel)
    require(static_cast<int>(shape.tokens()), "tokens of a microbatch");
}

}  // namespace longhaul::training
