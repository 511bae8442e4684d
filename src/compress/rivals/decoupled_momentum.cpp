#include "compress/rivals/decoupled_momentum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.hpp"
#include "base/kept_share.hpp"

namespace longhaul::compress {
namespace {

/// Row k has the k-th cosine at each of `size` places.
std::vector<float> make_cosine_rows(std::size_t size) {
  std::vector<float> rows(size * size);
  const auto length = static_cast<double>(size);
  for (std::size_t k = 0; k < size; ++k)
    for (std::size_t i = 0; i < size; ++i) {
      const double angle =
          std::numbers::pi / length * (static_cast<double>(i) + 0.5) * static_cast<double>(k);
      rows[k * size + i] =
          static_cast<float>(std::sqrt((k == 0 ? 1 : 2) / length) * std::cos(angle));
    }
  return rows;
}

const std::vector<float>& cosine_rows(std::size_t size) {
  static const std::array<std::vector<float>, kDctChunk + 1> kRows = [] {
    std::array<std::vector<float>, kDctChunk + 1> all;
    for (std::size_t each = 1; each < all.size(); ++each) all[each] = make_cosine_rows(each);
    return all;
  }();
  LONGHAUL_ASSERT(size >= 1 && size <= kDctChunk, "{} numbers", size);
  return kRows[size];
}

using ChunkNumbers = std::array<float, kDctChunk * kDctChunk>;

}  // namespace

void cosine_transform(std::span<const float> numbers, std::size_t rows, std::size_t columns,
                      std::span<float> coefficients) {
  ChunkNumbers along{};  // of each row its cosines
  const std::vector<float>& of_row = cosine_rows(columns);
  const std::vector<float>& of_column = cosine_rows(rows);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t l = 0; l < columns; ++l)
      for (std::size_t j = 0; j < columns; ++j)
        along[i * columns + l] += numbers[i * columns + j] * of_row[l * columns + j];
  std::fill_n(coefficients.begin(), rows * columns, 0.0F);
  for (std::size_t k = 0; k < rows; ++k)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t l = 0; l < columns; ++l)
        coefficients[k * columns + l] += along[i * columns + l] * of_column[k * rows + i];
}

void inverse_cosine_transform(std::span<const float> coefficients, std::size_t rows,
                              std::size_t columns, std::span<float> numbers) {
  ChunkNumbers along{};
  const std::vector<float>& of_row = cosine_rows(columns);
  const std::vector<float>& of_column = cosine_rows(rows);
  for (std::size_t k = 0; k < rows; ++k)
    for (std::size_t l = 0; l < columns; ++l)
      for (std::size_t j = 0; coefficients[k * columns + l] != 0 && j < columns; ++j)
        along[k * columns + j] += coefficients[k * columns + l] * of_row[l * columns + j];
  std::fill_n(numbers.begin(), rows * columns, 0.0F);
  for (std::size_t k = 0; k < rows; ++k)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        numbers[i * columns + j] += along[k * columns + j] * of_column[k * rows + i];
}

DecoupledMomentum::DecoupledMomentum(double keep, float decay, std::vector<TensorChunk> chunks,
                                     std::size_t count)
    : keep_{keep}, decay_{decay}, chunks_{std::move(chunks)}, momenta_(count) {
  if (!is_kept_share(keep))
    fail("demo: {} of the coefficients cannot be kept. Give a share above 0 and at most 1.", keep);
  if (!(decay >= 0 && decay <= 1)) fail("demo: the decay is {}. Give one from 0 to 1.", decay);
  for (const TensorChunk& chunk : chunks_) coefficients_ += static_cast<std::int64_t>(chunk.size());
}

SparseSet DecoupledMomentum::take(std::span<const float> gradient) {
  LONGHAUL_ASSERT(gradient.size() == momenta_.size(), "{} of {}", gradient.size(), momenta_.size());
  for (std::size_t i = 0; i < momenta_.size(); ++i)
    momenta_[i] = decay_ * momenta_[i] + gradient[i];
  SparseSet sent{coefficients_, 1, {}, {}};
  std::vector<float> numbers, coefficients, kept;
  std::uint32_t before = 0;
  for (const TensorChunk& chunk : chunks_) {
    numbers.resize(chunk.size());
    coefficients.resize(chunk.size());
    kept.assign(chunk.size(), 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = momenta_[chunk.place(i)];
    cosine_transform(numbers, chunk.rows, chunk.columns, coefficients);
    for (const std::uint32_t place :
         largest_places(coefficients, kept_of_chunk(chunk.size(), keep_))) {
      sent.blocks.push_back(before + place);
      sent.values.push_back(kept[place] = coefficients[place]);
    }
    inverse_cosine_transform(kept, chunk.rows, chunk.columns, numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) momenta_[chunk.place(i)] -= numbers[i];
    before += static_cast<std::uint32_t>(chunk.size());
  }
  return sent;
}

std::vector<float> DecoupledMomentum::numbers_of(const SparseSet& coefficients) const {
  std::vector<float> dense(static_cast<std::size_t>(coefficients.count));
  add_to(dense, coefficients);
  std::vector<float> all(momenta_.size()), numbers;
  std::size_t before = 0;
  for (const TensorChunk& chunk : chunks_) {
    numbers.resize(chunk.size());
    inverse_cosine_transform(std::span{dense}.subspan(before, chunk.size()), chunk.rows,
                             chunk.columns, numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) all[chunk.place(i)] = numbers[i];
    before += chunk.size();
  }
  return all;
}

void DecoupledMomentum::restore(std::vector<float> momenta) {
  if (momenta.size() != momenta_.size())
    fail("demo: what is kept has {} numbers instead of {}. Begin anew.", momenta.size(),
         momenta_.size());
  momenta_ = std::move(momenta);
}

void demo_step(std::span<float> weights, std::span<const float> numbers, float rate) {
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (numbers[i] != 0) weights[i] -= std::copysign(rate, numbers[i]);
}

}  // namespace longhaul::compress
