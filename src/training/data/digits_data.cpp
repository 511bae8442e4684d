#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "training/data/data_kinds.hpp"

/// Images of digits as sequences of pixels, of which the last one predicts the class.
namespace longhaul::training {
namespace {

constexpr int kPixels = 64, kPixelValues = 17, kClasses = 10;
constexpr std::size_t kRow = kPixels + 1;  ///< bytes of a row in memory: pixels and class
constexpr std::int64_t kHeldOutRows = 360;
constexpr std::int32_t kNotCounted = -1;

class DigitsData final : public CountedData {
public:
  /// `rows`: kRow bytes each.
  DigitsData(DataFacts facts, std::string rows, std::uint64_t seed)
      : CountedData{std::move(facts), seed}, rows_{std::move(rows)} {}

protected:
  void read(Part part, std::int64_t sample, nn::MicrobatchText& into) const override {
    const std::int64_t row = sample + (part == Part::train ? 0 : facts().train.samples);
    const std::string_view values = std::string_view{rows_}.substr(to_size(row) * kRow, kRow);
    into.tokens.insert(into.tokens.end(), values.begin(), values.end() - 1);
    into.targets.insert(into.targets.end(), kPixels - 1, kNotCounted);
    into.targets.push_back(values.back());
  }

private:
  std::string rows_;
};

/// What a field of the table says, where it is a whole number of [0, past).
std::optional<char> value_of(std::string_view field, int past) {
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc{} || end != field.data() + field.size()) return std::nullopt;
  if (!(value >= 0 && value < past) || value != std::floor(value)) return std::nullopt;
  return static_cast<char>(value);
}

/// Adds the line's 65 bytes to the rows.
void add_row(std::string_view file, std::size_t number, std::string_view line, std::string& rows) {
  for (std::size_t column = 1; column <= kRow; ++column) {
    const std::size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != (column == kRow))
      fail("{}:{}: is no row of {} numbers ({}). Write 64 pixels and a class, with commas between.",
           file, number, kRow,
           column == kRow ? std::string{"it has more"} : fmt::format("it has {}", column));
    const std::string_view field = line.substr(0, comma);
    const int past = column == kRow ? kClasses : kPixelValues;
    const std::optional<char> value = value_of(field, past);
    if (!value)
      fail("{}:{}: \"{}\" in column {} is no {} (a whole number from 0 to {}). Mend the table.",
           file, number, field.substr(0, 40), column, column == kRow ? "class" : "pixel", past - 1);
    rows += *value;
    line.remove_prefix(column == kRow ? line.size() : comma + 1);
  }
}

std::string table_rows(std::string_view file, std::string_view csv) {
  std::string rows;
  for (std::size_t number = 1; !csv.empty(); ++number) {
    const std::size_t end = std::min(csv.find('\n'), csv.size());
    std::string_view line = csv.substr(0, end);
    csv.remove_prefix(std::min(end + 1, csv.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) add_row(file, number, line, rows);
  }
  return rows;
}

}  // namespace

std::shared_ptr<const TrainingData> open_digits(std::string name, std::string_view file,
                                                std::string_view csv, const nn::ModelShape& shape,
                                                std::uint64_t seed) {
  if (shape.sequence != kPixels)
    fail(
        "{} does not fit sequences of {} (an image is {} tokens). Set "
        "model.sequence_length = 64.",
        name, shape.sequence, kPixels);
  require_vocabulary(name, kPixelValues, shape);
  std::string rows = table_rows(file, csv);
  const auto count = static_cast<std::int64_t>(rows.size() / kRow);
  if (count <= kHeldOutRows)
    fail("{}: has {} rows (the last {} are held out, and there is none to train on). Give more.",
         file, count, kHeldOutRows);
  const std::string_view all{rows};
  const std::size_t split = to_size(count - kHeldOutRows) * kRow;
  const auto part = [](std::string_view bytes) {
    const auto size = static_cast<std::int64_t>(bytes.size());
    return DataPart{size, sha256(bytes), size / static_cast<std::int64_t>(kRow)};
  };
  DataFacts facts{.name = std::move(name),
                  .train = part(all.substr(0, split)),
                  .held_out = part(all.substr(split)),
                  .vocabulary = kPixelValues,
                  .classes = kClasses};
  return std::make_shared<DigitsData>(std::move(facts), std::move(rows), seed);
}

}  // namespace longhaul::training
