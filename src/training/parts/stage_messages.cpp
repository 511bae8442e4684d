#include "training/parts/stage_messages.hpp"

#include "base/error.hpp"
#include "base/listed_enum.hpp"

namespace longhaul::training {

StageMessages::StageMessages(const ActivationCompression& how)
    : coding_{from_string<compress::TensorFormat>(to_string(how.format)).value(), how.keep},
      feedback_{how.format == ActivationFormat::topk ? how.feedback : ActivationFeedback::none} {}

std::vector<float>& StageMessages::memory_of(OpId op, std::size_t count) {
  std::vector<float>& memory = memory_[op];
  memory.resize(count);
  return memory;
}

std::vector<std::byte> StageMessages::sent(OpId send, std::vector<float> numbers) {
  if (feedback_ == ActivationFeedback::none) return compress::encode_tensor(numbers, coding_);
  std::vector<float>& memory = memory_of(send, numbers.size());
  if (feedback_ == ActivationFeedback::residual) {
    for (std::size_t i = 0; i < numbers.size(); ++i) memory[i] += numbers[i];
    numbers = memory;
    std::vector<std::byte> payload = compress::encode_tensor(numbers, coding_);
    for (std::size_t i = 0; i < numbers.size(); ++i) memory[i] -= numbers[i];
    return payload;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] -= memory[i];
  std::vector<std::byte> payload = compress::encode_tensor(numbers, coding_);
  for (std::size_t i = 0; i < numbers.size(); ++i) memory[i] += numbers[i];
  return payload;
}

std::vector<float> StageMessages::received(OpId receive, std::span<const std::byte> payload,
                                           std::size_t count, std::string_view source) {
  std::vector<float> numbers = compress::decode_tensor(
      payload, coding_, {.source = source, .count = static_cast<std::int64_t>(count)});
  if (feedback_ != ActivationFeedback::difference) return numbers;
  std::vector<float>& memory = memory_of(receive, count);
  for (std::size_t i = 0; i < count; ++i) memory[i] += numbers[i];
  return memory;
}

bool StageMessages::fits(std::size_t bytes, std::size_t count) const {
  const std::size_t most = most_bytes(count);
  return coding_.format == compress::TensorFormat::topk ? bytes <= most : bytes == most;
}

void StageMessages::save(StateWriter& to) const {
  if (feedback_ == ActivationFeedback::none) return;
  to.put(static_cast<std::uint64_t>(memory_.size()));
  for (const auto& [op, numbers] : memory_) {
    to.put(op);
    to.put_all<float>(numbers);
  }
}

void StageMessages::load(StateReader& from) {
  if (feedback_ == ActivationFeedback::none) return;
  memory_.clear();
  for (auto count = from.take<std::uint64_t>(); count > 0; --count) {
    const OpId op = from.take<OpId>();
    memory_[op] = from.take_all<float>();
  }
}

}  // namespace longhaul::training
