#include "nn/layers/text.hpp"

#include <cmath>

#include "base/random.hpp"

namespace longhaul::nn {

namespace {

constexpr double kFromOne = 0.5, kFromTwo = 0.4;
constexpr std::int32_t kClasses = 8;  ///< of the token before the last

std::uint64_t word_of(std::int32_t token) { return static_cast<std::uint64_t>(token) + 1; }

std::int32_t below(std::uint64_t word, std::int32_t count) {
  return static_cast<std::int32_t>(word % static_cast<std::uint64_t>(count));
}

}  // namespace

SyntheticText::SyntheticText(const ModelShape& shape, std::uint64_t seed)
    : batch_{shape.batch},
      sequence_{shape.sequence},
      vocabulary_{shape.vocabulary},
      seed_{derived_seed(seed, 0x7e87)} {}

std::int32_t SyntheticText::usual(std::int32_t before) const {
  return below(derived_seed(seed_, word_of(before)), vocabulary_);
}

std::int32_t SyntheticText::usual(std::int32_t before, std::int32_t before_that) const {
  return below(derived_seed(seed_, word_of(before), word_of(before_that % kClasses)), vocabulary_);
}

MicrobatchText SyntheticText::operator()(int iteration, ReplicaId replica,
                                         MicrobatchId microbatch) const {
  const std::uint64_t run = derived_seed(~seed_, word_of(iteration), word_of(number(replica)));
  MicrobatchText text;
  for (int sequence = 0; sequence < batch_; ++sequence) {
    Random random{derived_seed(run, word_of(microbatch), word_of(sequence))};
    std::int32_t before_that = below(random.next(), vocabulary_);
    std::int32_t before = below(random.next(), vocabulary_);
    for (int i = 0; i < sequence_; ++i) {
      const double draw = random.uniform();
      const std::int32_t any = below(random.next(), vocabulary_);
      const std::int32_t next = draw < kFromOne              ? usual(before)
                                : draw < kFromOne + kFromTwo ? usual(before, before_that)
                                                             : any;
      text.tokens.push_back(before);
      text.targets.push_back(next);
      before_that = before;
      before = next;
    }
  }
  return text;
}

double SyntheticText::entropy() const {
  const double any = (1 - kFromOne - kFromTwo) / vocabulary_;
  const auto part = [](double probability) { return -probability * std::log(probability); };
  return part(kFromOne + any) + part(kFromTwo + any) + (vocabulary_ - 2) * part(any);
}

}  // namespace longhaul::nn
