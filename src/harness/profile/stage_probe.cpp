#include "harness/profile/stage_probe.hpp"

#include <utility>

#include "base/random.hpp"

namespace longhaul::harness {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr nn::BlockPart kWhole{};

Bytes bytes_of_count(std::size_t count) { return Bytes{static_cast<std::int64_t>(count)}; }

/// Runs `work`, and adds its time where a sample is asked for.
template <typename Work>
void run(nn::TensorOps& math, double* time, Work work) {
  if (time == nullptr) return work();
  *time += timed(math, work);
}

}  // namespace

std::vector<std::int32_t> synthetic_tokens(std::size_t count, int vocabulary) {
  std::vector<std::int32_t> tokens(count);
  std::uint64_t state = 12345;
  for (std::int32_t& token : tokens) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    token = static_cast<std::int32_t>((state >> 33U) % static_cast<std::uint64_t>(vocabulary));
  }
  return tokens;
}

StageProbe::StageProbe(nn::TensorOps& math, const nn::ModelShape& shape,
                       const std::vector<nn::LayerRange>& chunks, nn::Recompute recompute)
    : math_{math},
      shape_{shape},
      recompute_{recompute},
      memory_{math, 0},
      input_{memory_.take(shape.boundary(), "bench_profile: input")},
      gradient_{memory_.take(shape.boundary(), "bench_profile: gradient")},
      tokens_{synthetic_tokens(shape.tokens(), shape.vocabulary)} {
  math_.fill_random(kSeed, 1, input_.view());
  math_.fill_random(kSeed + 1, 1 / static_cast<float>(shape.tokens()), gradient_.view());
  const std::size_t before = memory_.held();
  for (const nn::LayerRange& layers : chunks) {
    chunks_.push_back(std::make_unique<nn::Chunk>(math, memory_, shape, layers, recompute, kSeed));
    chunks_.back()->set_loss_scale(1 / static_cast<float>(shape.tokens()));
    chunks_.back()->begin_iteration();
  }
  resident_ = memory_.held() - before;
}

/// A copy of `like` that a block may keep.
nn::Buffer StageProbe::passing(nn::ArrayView like, const char* what) {
  nn::Buffer copy = memory_.take(like.count, what);
  math_.copy(like, copy.view());
  return copy;
}

void StageProbe::forward(nn::Chunk& chunk, double* time) {
  nn::Buffer input;
  if (chunk.holds_embedding())
    chunk.set_tokens(MicrobatchId{}, tokens_);
  else
    input = passing(input_.view(), "bench_profile: input of F");
  if (chunk.holds_head()) chunk.set_targets(MicrobatchId{}, tokens_);
  nn::Buffer output;
  run(math_, time, [&] { output = chunk.forward(MicrobatchId{}, kWhole, std::move(input)); });
}

void StageProbe::input_gradient(nn::Chunk& chunk, double* time) {
  nn::Buffer gradient;
  if (!chunk.holds_head()) gradient = passing(gradient_.view(), "bench_profile: gradient of D");
  nn::Buffer passed;
  run(math_, time,
      [&] { passed = chunk.backward_input(MicrobatchId{}, kWhole, std::move(gradient)); });
}

void StageProbe::backward(nn::Chunk& chunk, double* time) {
  nn::Buffer gradient;
  if (!chunk.holds_head()) gradient = passing(gradient_.view(), "bench_profile: gradient of B");
  nn::Buffer passed;
  run(math_, time, [&] { passed = chunk.backward(MicrobatchId{}, kWhole, std::move(gradient)); });
}

void StageProbe::round(BlockSamples& samples) {
  for (const auto& chunk : chunks_) chunk->begin_iteration();
  double forward_time = 0, dgrad = 0, wgrad = 0, backward_time = 0, recompute = 0;
  for (const auto& chunk : chunks_) forward(*chunk, &forward_time);
  for (std::size_t i = chunks_.size(); i-- > 0;) {
    nn::Chunk& chunk = *chunks_[i];
    if (recompute_ == nn::Recompute::on) {
      run(math_, &recompute, [&] { chunk.recompute(MicrobatchId{}, kWhole); });
      backward(chunk, nullptr);
    } else {
      input_gradient(chunk, &dgrad);
      run(math_, &wgrad, [&] { chunk.backward_weight(MicrobatchId{}, kWhole); });
    }
  }
  if (recompute_ == nn::Recompute::on) return samples.recompute.push_back(recompute);
  for (const auto& chunk : chunks_) forward(*chunk, nullptr);
  for (std::size_t i = chunks_.size(); i-- > 0;) backward(*chunks_[i], &backward_time);
  samples.forward.push_back(forward_time);
  samples.dgrad.push_back(dgrad);
  samples.wgrad.push_back(wgrad);
  samples.backward.push_back(backward_time);
}

Bytes StageProbe::in_flight() const {
  return bytes_of_count(memory_.held() - resident_ - input_.view().bytes() -
                        gradient_.view().bytes());
}

void StageProbe::weigh(StageMemory& memory) {
  memory.resident = bytes_of_count(resident_);
  std::size_t weights = 0;
  for (const auto& chunk : chunks_) weights += chunk->all_weights().bytes();
  memory.weights = bytes_of_count(weights);
  memory_.reset_peak();
  for (const auto& chunk : chunks_) forward(*chunk, nullptr);
  (recompute_ == nn::Recompute::on ? memory.kept_recomputed : memory.activation) = in_flight();
  for (std::size_t i = chunks_.size(); i-- > 0;) {
    if (recompute_ == nn::Recompute::on) chunks_[i]->recompute(MicrobatchId{}, kWhole);
    input_gradient(*chunks_[i], nullptr);
  }
  if (recompute_ == nn::Recompute::off) {
    memory.kept_for_wgrad = in_flight();
    memory.peak = bytes_of_count(memory_.peak()) - memory.resident -
                  bytes_of_count(input_.view().bytes() + gradient_.view().bytes());
  }
  for (const auto& chunk : chunks_) chunk->backward_weight(MicrobatchId{}, kWhole);
  memory.left_over = in_flight();
}

float StageProbe::loss() {
  float sum = 0;
  for (const auto& chunk : chunks_)
    if (chunk->holds_head()) sum += chunk->loss();
  return sum;
}

}  // namespace longhaul::harness
