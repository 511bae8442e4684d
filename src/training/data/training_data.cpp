#include "training/data/training_data.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/suggest.hpp"
#include "base/text_file.hpp"
#include "training/data/data_kinds.hpp"

namespace longhaul::training {
namespace {

std::shared_ptr<const TrainingData> open_python_text(const nn::ModelShape& shape,
                                                     std::uint64_t seed) {
  PythonText python = python_sources();
  return open_text("text:python " + python.version, bytes_of_text(std::move(python.text)), shape,
                   seed);
}

}  // namespace

CountedData::CountedData(DataFacts facts, std::uint64_t seed)
    : facts_{std::move(facts)}, shuffle_{facts_.train.samples, seed} {}

nn::MicrobatchText CountedData::samples(std::uint64_t first, int count) const {
  const auto add = [&](std::int64_t sample, nn::MicrobatchText& into) {
    read(Part::train, shuffle_[first + static_cast<std::uint64_t>(sample)], into);
  };
  return std::move(in_microbatches(count, count, add).front());
}

std::vector<nn::MicrobatchText> CountedData::held_out(int batch, int most) const {
  const std::int64_t all = facts_.held_out.samples;
  const std::int64_t count = std::min<std::int64_t>(most, all);
  // floor(sample * all / count), which would not fit.
  const auto add = [&](std::int64_t sample, nn::MicrobatchText& into) {
    const std::int64_t place = sample * (all / count) + sample * (all % count) / count;
    read(Part::held_out, place, into);
  };
  return in_microbatches(count, batch, add);
}

std::vector<nn::MicrobatchText> in_microbatches(
    std::int64_t count, int batch,
    const std::function<void(std::int64_t, nn::MicrobatchText&)>& add) {
  LONGHAUL_ASSERT(count >= 1 && batch >= 1, "{} samples in microbatches of {}", count, batch);
  std::vector<nn::MicrobatchText> all(to_size((count + batch - 1) / batch));
  for (std::int64_t sample = 0; sample < count; ++sample) add(sample, all[at(sample / batch)]);
  return all;
}

void require_vocabulary(std::string_view name, int vocabulary, const nn::ModelShape& shape) {
  if (shape.vocabulary < vocabulary)
    fail("{} does not fit a vocabulary of {} (its tokens are 0 to {}). Set model.vocabulary={}.",
         name, shape.vocabulary, vocabulary - 1, vocabulary);
}

std::shared_ptr<const TrainingData> open_data(const std::string& spec, const nn::ModelShape& shape,
                                              std::uint64_t seed) {
  LONGHAUL_ASSERT(shape.sequence >= 1, "sequences of {} tokens", shape.sequence);
  const std::size_t colon = std::min(spec.find(':'), spec.size());
  const std::string kind = spec.substr(0, colon);
  const std::string path = colon < spec.size() ? spec.substr(colon + 1) : "";
  if (colon < spec.size() && path.empty() && (kind == "text" || kind == "digits"))
    fail("data \"{}\" names no file (nothing follows the colon). Write {} or {}:PATH.", spec, kind,
         kind);
  if (kind == "text") {
    if (path.empty() || path == "python") return open_python_text(shape, seed);
    return open_text(spec, bytes_of_file(path), shape, seed);
  }
  if (kind == "digits") {
    if (path.empty()) return open_digits(spec, "digits.csv", digits_of_scikit_learn(), shape, seed);
    return open_digits(spec, path, read_text_file(path), shape, seed);
  }
  if (spec == "synthetic") return open_synthetic(shape, seed);
  static const std::array<std::string, 4> kKinds{"text:PATH", "text:python", "digits", "synthetic"};
  fail("there is no data \"{}\". {}", spec, suggestion(spec, kKinds));
}

}  // namespace longhaul::training
