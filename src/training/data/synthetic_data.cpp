#include <utility>

#include "base/error.hpp"
#include "training/data/data_kinds.hpp"

/// Data without a file: what follows from a seed.
namespace longhaul::training {
namespace {

/// Draws a chain's sequences. Those of an iteration k of training are microbatch 0, those held out
/// microbatch 1: other sequences of the same chain.
class SyntheticData final : public TrainingData {
public:
  SyntheticData(const nn::ModelShape& shape, std::uint64_t seed)
      : text_{single(shape), seed},
        facts_{.name = fmt::format("synthetic, seed {}", seed),
               .train = {},
               .held_out = {},
               .vocabulary = shape.vocabulary} {}

  [[nodiscard]] const DataFacts& facts() const override { return facts_; }
  [[nodiscard]] nn::MicrobatchText samples(std::uint64_t first, int count) const override {
    const auto add = [&](std::int64_t sample, nn::MicrobatchText& into) {
      add_sequence(first + static_cast<std::uint64_t>(sample), MicrobatchId{0}, into);
    };
    return std::move(in_microbatches(count, count, add).front());
  }
  [[nodiscard]] std::vector<nn::MicrobatchText> held_out(int batch, int most) const override {
    return in_microbatches(most, batch, [&](std::int64_t sample, nn::MicrobatchText& into) {
      add_sequence(static_cast<std::uint64_t>(sample), MicrobatchId{1}, into);
    });
  }

private:
  static nn::ModelShape single(nn::ModelShape shape) {
    shape.batch = 1;
    return shape;
  }
  /// An iteration has 31 bits; what a sample's number has above them names a replica.
  void add_sequence(std::uint64_t sample, MicrobatchId half, nn::MicrobatchText& into) const {
    constexpr std::uint64_t kMask = 0x7fff'ffff;
    const nn::MicrobatchText one =
        text_(static_cast<int>(sample & kMask),
              ReplicaId{static_cast<std::int32_t>(sample >> 31U & kMask)}, half);
    into.tokens.insert(into.tokens.end(), one.tokens.begin(), one.tokens.end());
    into.targets.insert(into.targets.end(), one.targets.begin(), one.targets.end());
  }

  nn::SyntheticText text_;
  DataFacts facts_;
};

}  // namespace

std::shared_ptr<const TrainingData> open_synthetic(const nn::ModelShape& shape,
                                                   std::uint64_t seed) {
  return std::make_shared<SyntheticData>(shape, seed);
}

}  // namespace longhaul::training
