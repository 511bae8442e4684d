#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/layers/shape.hpp"
#include "nn/layers/text.hpp"

namespace longhaul::training {

/// One of the two parts of data: what is trained on, or what is held out.
struct DataPart {
  std::int64_t bytes = 0;    ///< 0 of what follows from a seed
  std::string sha256{};      ///< of these bytes, 64 hexadecimal digits; empty without bytes
  std::int64_t samples = 0;  ///< of an epoch; 0: no end (synthetic)
};

/// What a record says about the data of a run.
struct DataFacts {
  std::string name;  ///< "text:PATH", "text:python 3.11.7", "digits", "synthetic, seed 1"
  DataPart train, held_out;
  int vocabulary = 0;  ///< tokens and targets are below it; a model may have more
  int classes = 0;     ///< 0: text, every token has a target; else one target a sample, the class
};

/// Samples to train on and samples held out. All functions are const and safe to call from several
/// threads at once; share it by pointer.
class TrainingData {
public:
  TrainingData() = default;
  TrainingData(const TrainingData&) = delete;
  TrainingData& operator=(const TrainingData&) = delete;
  virtual ~TrainingData() = default;

  [[nodiscard]] virtual const DataFacts& facts() const = 0;
  /// Samples first, first + 1, .., first + count - 1 of the endless training order: one microbatch
  /// of `count` sequences, one after the other (tokens and targets: count * sequence numbers each).
  /// An epoch is a seeded permutation of all samples, each once; so that the samples of an
  /// iteration are the same however replicas and microbatches divide them, and none is skipped.
  /// A target of -1 is not counted (TensorOps::cross_entropy). `count` is at least 1. Throws Error
  /// where the data can no longer be read.
  [[nodiscard]] virtual nn::MicrobatchText samples(std::uint64_t first, int count) const = 0;
  /// At most `most` held-out samples, evenly spaced over the held-out part, the same in each call,
  /// in microbatches of `batch`, the last of which may be smaller. Both at least 1.
  [[nodiscard]] virtual std::vector<nn::MicrobatchText> held_out(int batch, int most) const = 0;
};

/// Opens data by its name:
///
/// - "text:PATH": the bytes of a file, tokens 0 to 255. Its last tenth (floor(bytes / 10)) is held
///   out. Samples are windows of `shape.sequence` bytes that begin at multiples of it from the
///   begin of their part, their targets the bytes one further on; what is left over at the end of a
///   part, less than a sequence and a byte, is in no sample. The file is never whole in memory: it
///   is read once from begin to end, 4 MiB at a time, for the SHA-256 of its parts, and then window
///   by window. It has to stay as it is while a run lasts.
/// - "text" or "text:python": likewise, of the library of a Python: its .py files in the order of
///   the bytes of their relative paths, one after the other, the first 10,000,000 bytes, without
///   links and folders called test, tests, site-packages or dist-packages. In memory. The name
///   has the version of Python; another version is another text, which its SHA-256 tells.
/// - "digits" or "digits:PATH": 8x8 images of handwritten digits: 64 tokens, the pixels 0 to 16,
///   row by row; the only target is the class, a token 0 to 9, at the last of them. The 1,797
///   images of scikit-learn (CC BY 4.0; E. Alpaydin and C. Kaynak, 1998), or lines of 65 numbers
///   with commas between, pixels and class. The last 360 are held out. Bytes and SHA-256 are of
///   rows of 65 bytes, whatever the file looked like. The shape's sequence has to be 64.
/// - "synthetic": nn::SyntheticText: sample k is its sequence of iteration k. Held out are other
///   sequences of the same chain (another chain could not be learnt from these).
///
/// Python is $LONGHAUL_PYTHON, else .venv/bin/python of the checkout ($LONGHAUL_ROOT), else
/// python3. Of `shape`, sequence and vocabulary count. Throws Error where there is no such data, it
/// cannot be read, is empty, has less than one sample in a part, or does not fit the shape.
[[nodiscard]] std::shared_ptr<const TrainingData> open_data(const std::string& spec,
                                                            const nn::ModelShape& shape,
                                                            std::uint64_t seed);

}  // namespace longhaul::training
