#include "device/cuda/cuda_gradient.hpp"

#include <algorithm>
#include <utility>

namespace longhaul::device {
namespace {

constexpr std::size_t kLargestBlock = 16;

/// Chooses the device of this thread, before any handle of CUDA is made.
cuda::Urgency least_on(int device) {
  cuda::use_device(device);
  return cuda::Urgency::normal;
}

std::size_t whole_blocks(std::int64_t numbers) {
  return (static_cast<std::size_t>(numbers) + kLargestBlock - 1) / kLargestBlock * kLargestBlock;
}

}  // namespace

CudaGradient::CudaGradient(int index, std::int64_t count, std::int64_t room)
    : index_{index},
      count_{static_cast<std::size_t>(count)},
      room_{whole_blocks(room)},
      stream_{least_on(index)},
      gradient_{bytes()},
      opposite_{bytes()},
      residual_{bytes()},
      copy_{bytes()},
      sums_{sizeof(SelectionSums)},
      tiles_{(count_ + kTileNumbers - 1) / kTileNumbers * sizeof(TileBlocks)},
      brought_values_{room_ * sizeof(float)},
      values_{room_ * sizeof(float)},
      brought_blocks_{room_ * sizeof(std::uint32_t)},
      blocks_{room_ * sizeof(std::uint32_t)},
      out_{count_},
      in_{count_} {}

CudaGradient::~CudaGradient() {
  cuda::report(cudaStreamSynchronize(stream_.get()), "waiting for a device");
}

void CudaGradient::copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) const {
  cuda::use_device(index_);
  cuda::check(cudaMemcpyAsync(to, from, size, kind, stream_.get()));
}

void CudaGradient::load(std::span<const float> gradient) {
  LONGHAUL_ASSERT(gradient.size() == count_, "{} numbers instead of {}", gradient.size(), count_);
  finish();
  std::ranges::copy(gradient, in_.data());
  copy(gradient_.data(), in_.data(), bytes(), cudaMemcpyHostToDevice);
  negate_numbers(stream_.get(), gradient_.as<float>(), count_, opposite_.as<float>());
  restart();
}

void CudaGradient::restart() {
  cuda::use_device(index_);
  cuda::check(cudaMemsetAsync(residual_.data(), 0, bytes(), stream_.get()));
  copy_within();
  opposite_is_next_ = false;
}

const float* CudaGradient::next_gradient() {
  return std::exchange(opposite_is_next_, !opposite_is_next_) ? opposite_.as<float>()
                                                              : gradient_.as<float>();
}

SelectedVector CudaGradient::vector_of(const GradientChoice& choice, const float* gradient) const {
  if (choice.residual == ResidualPlace::in_gradient) return {copy_.as<float>(), nullptr, count_};
  return {residual_.as<float>(), gradient, count_};
}

SelectionRoom CudaGradient::room_for(int block) const {
  return {sums_.as<SelectionSums>(),
          tiles_.as<TileBlocks>(),
          brought_values_.as<float>(),
          values_.as<float>(),
          brought_blocks_.as<std::uint32_t>(),
          blocks_.as<std::uint32_t>(),
          room_ / static_cast<std::size_t>(block)};
}

void CudaGradient::select(const GradientChoice& choice) {
  cuda::use_device(index_);
  choice_ = choice;
  const float* const gradient = choice.residual == ResidualPlace::apart ? next_gradient() : nullptr;
  select_blocks(stream_.get(), choice.block, vector_of(choice, gradient),
                choice.threshold * static_cast<float>(choice.block), room_for(choice.block));
}

void CudaGradient::copy_within() {
  copy(copy_.data(), gradient_.data(), bytes(), cudaMemcpyDeviceToDevice);
}

void CudaGradient::copy_out() {
  copy(out_.data(), next_gradient(), bytes(), cudaMemcpyDeviceToHost);
}

void CudaGradient::copy_in() { copy(copy_.data(), in_.data(), bytes(), cudaMemcpyHostToDevice); }

void CudaGradient::finish() {
  cuda::use_device(index_);
  stream_.wait_on_host();
}

double CudaGradient::seconds_of(const std::function<void()>& work) {
  cuda::use_device(index_);
  begin_.record(stream_.get());
  work();
  end_.record(stream_.get());
  end_.wait_on_host();
  float milliseconds = 0;
  cuda::check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
  return 1e-3 * static_cast<double>(milliseconds);
}

TakenBlocks CudaGradient::taken() {
  SelectionSums sums{};
  copy(&sums, sums_.data(), sizeof sums, cudaMemcpyDeviceToHost);
  finish();
  const SelectedVector vector = vector_of(choice_, nullptr);
  if (sums.last_not_finite != 0) {
    const auto at = static_cast<std::size_t>(~sums.last_not_finite);
    float number = 0;
    copy(&number, vector.numbers + at, sizeof number, cudaMemcpyDeviceToHost);
    finish();
    throw compress::NotFinite{at, number};
  }
  const SelectionRoom room = room_for(choice_.block);
  TakenBlocks taken{sums.above, {static_cast<std::int64_t>(count_), choice_.block, {}, {}}};
  if (sums.above > room.room)
    give_back_blocks(stream_.get(), choice_.block, vector, room);
  else
    taken.set = set_of(sums.above);
  finish();
  return taken;
}

compress::SparseSet CudaGradient::set_of(std::size_t blocks) const {
  compress::SparseSet set{static_cast<std::int64_t>(count_), choice_.block, {}, {}};
  if (blocks == 0) return set;
  const auto width = static_cast<std::size_t>(choice_.block);
  set.blocks.resize(blocks);
  copy(set.blocks.data(), blocks_.data(), blocks * sizeof(std::uint32_t), cudaMemcpyDeviceToHost);
  stream_.wait_on_host();
  set.values.resize((blocks - 1) * width + set.size_of(set.blocks.back()));
  copy(set.values.data(), values_.data(), set.values.size() * sizeof(float),
       cudaMemcpyDeviceToHost);
  stream_.wait_on_host();
  return set;
}

std::vector<float> CudaGradient::left() {
  std::vector<float> numbers(count_);
  copy(numbers.data(), vector_of(choice_, nullptr).numbers, bytes(), cudaMemcpyDeviceToHost);
  finish();
  return numbers;
}

}  // namespace longhaul::device
