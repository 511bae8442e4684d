#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "training/data/byte_source.hpp"
#include "training/data/shuffle.hpp"
#include "training/data/training_data.hpp"

namespace longhaul::training {

/// Data of a known number of samples: their order is the same for all kinds. What a kind adds is
/// how a sample is read.
class CountedData : public TrainingData {
public:
  [[nodiscard]] const DataFacts& facts() const override { return facts_; }
  [[nodiscard]] nn::MicrobatchText samples(std::uint64_t first, int count) const override;
  [[nodiscard]] std::vector<nn::MicrobatchText> held_out(int batch, int most) const override;

protected:
  enum class Part { train, held_out };

  /// Both parts have a sample at least.
  CountedData(DataFacts facts, std::uint64_t seed);
  /// Adds sample `sample` of a part, from 0 on, in the order in which they stand.
  virtual void read(Part part, std::int64_t sample, nn::MicrobatchText& into) const = 0;

private:
  DataFacts facts_;
  Shuffle shuffle_;
};

/// `count` samples made by `add`(which, text), in microbatches of `batch`.
[[nodiscard]] std::vector<nn::MicrobatchText> in_microbatches(
    std::int64_t count, int batch,
    const std::function<void(std::int64_t, nn::MicrobatchText&)>& add);

/// Throws Error unless tokens below `vocabulary` fit a model of the shape.
void require_vocabulary(std::string_view name, int vocabulary, const nn::ModelShape& shape);

/// The kinds, as open_data() describes them. `name` is that of the record and of messages.
[[nodiscard]] std::shared_ptr<const TrainingData> open_text(std::string name,
                                                            std::unique_ptr<ByteSource> bytes,
                                                            const nn::ModelShape& shape,
                                                            std::uint64_t seed);
/// `csv`: lines of 65 numbers, from the file `file` (for messages).
[[nodiscard]] std::shared_ptr<const TrainingData> open_digits(std::string name,
                                                              std::string_view file,
                                                              std::string_view csv,
                                                              const nn::ModelShape& shape,
                                                              std::uint64_t seed);
[[nodiscard]] std::shared_ptr<const TrainingData> open_synthetic(const nn::ModelShape& shape,
                                                                 std::uint64_t seed);

/// What a Python has at hand: found and read by a child process.
struct PythonText {
  std::string version;  ///< "3.11.7"
  std::string text;
};

/// The sources of its library, up to 10,000,000 bytes, as open_data() describes them. Throws Error
/// where there is no Python, or it fails.
[[nodiscard]] PythonText python_sources();

/// The table of digits in scikit-learn, unpacked: 1,797 lines of 65 numbers. Throws Error where
/// there is no scikit-learn; says how to install it.
[[nodiscard]] std::string digits_of_scikit_learn();

}  // namespace longhaul::training
