#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "training/data/data_kinds.hpp"

/// Text as bytes: windows of a sequence, and the byte after each.
namespace longhaul::training {
namespace {

constexpr int kByteValues = 256;
constexpr std::int64_t kHeldOutShare = 10;  ///< one of so many bytes

class TextData final : public CountedData {
public:
  TextData(DataFacts facts, std::unique_ptr<ByteSource> bytes, int sequence, std::uint64_t seed)
      : CountedData{std::move(facts), seed}, bytes_{std::move(bytes)}, sequence_{sequence} {}

protected:
  void read(Part part, std::int64_t sample, nn::MicrobatchText& into) const override {
    const std::int64_t begin = part == Part::train ? 0 : facts().train.bytes;
    std::string window(to_size(sequence_) + 1, '\0');
    bytes_->read(begin + sample * sequence_, window);
    const auto token = [](char byte) {
      return static_cast<std::int32_t>(static_cast<unsigned char>(byte));
    };
    for (std::size_t i = 0; i + 1 < window.size(); ++i) {
      into.tokens.push_back(token(window[i]));
      into.targets.push_back(token(window[i + 1]));
    }
  }

private:
  std::unique_ptr<ByteSource> bytes_;
  std::int64_t sequence_;
};

}  // namespace

std::shared_ptr<const TrainingData> open_text(std::string name, std::unique_ptr<ByteSource> bytes,
                                              const nn::ModelShape& shape, std::uint64_t seed) {
  require_vocabulary(name, kByteValues, shape);
  const std::int64_t size = bytes->size(), held_out = size / kHeldOutShare;
  const std::int64_t window = std::int64_t{shape.sequence} + 1;
  if (size == 0) fail("{} is empty (there is nothing to learn in it). Name another text.", name);
  if (held_out < window)
    fail(
        "{} is too short: {} bytes (their last tenth is held out, {} bytes, and a sequence of {} "
        "takes {}). Give {} bytes or more, or shorter sequences (model.sequence_length).",
        name, size, held_out, shape.sequence, window, window * kHeldOutShare);
  DataFacts facts{.name = std::move(name),
                  .train = {.bytes = size - held_out},
                  .held_out = {.bytes = held_out},
                  .vocabulary = kByteValues};
  facts.train.sha256 = sha256_of(*bytes, 0, size - held_out);
  facts.held_out.sha256 = sha256_of(*bytes, size - held_out, size);
  for (DataPart* part : {&facts.train, &facts.held_out})
    part->samples = (part->bytes - 1) / shape.sequence;
  return std::make_shared<TextData>(std::move(facts), std::move(bytes), shape.sequence, seed);
}

}  // namespace longhaul::training
