#include <cmath>
#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/compress/f32_file.hpp"
#include "cli/compress/state_file.hpp"
#include "compress/wire/wire.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

/// Blocks of 16 where blocks are asked for, single numbers where numbers are.
int usual_block(compress::Method method) {
  const bool single = method == compress::Method::topk || method == compress::Method::randomk;
  return single ? 1 : 16;
}

compress::Settings settings_of(const CompressArguments& typed) {
  compress::Settings settings;
  if (!typed.method.empty()) settings.method = choice<compress::Method>("--method", typed.method);
  if (!typed.keep.empty()) settings.keep = compress::parse_keep("--keep", typed.keep);
  settings.block = typed.block.empty() ? usual_block(settings.method)
                                       : whole_number("--block", typed.block, 1, 16);
  if (!typed.values.empty())
    settings.values = choice<compress::ValueFormat>("--values", typed.values);
  if (!typed.index.empty()) settings.index = choice<compress::IndexFormat>("--index", typed.index);
  if (!typed.seed.empty())
    settings.seed = static_cast<std::uint64_t>(whole_number("--seed", typed.seed, 0, 1 << 30));
  compress::check(settings);
  return settings;
}

/// What was compressed, and of it what is sent and what stays.
struct Compressed {
  compress::SparseSet set;
  std::vector<float> residual;
  std::vector<std::byte> payload;
  compress::SparsifierState state;
  float threshold = 0;
  double energy = 0;  ///< of all numbers: sum of squares
  double energy_kept = 0;
};

std::vector<float> finite_numbers(const std::string& file) {
  std::vector<float> numbers = read_f32(file);
  try {
    compress::require_finite(numbers);
  } catch (const compress::NotFinite& error) {
    throw Error{fmt::format("{}: {}", file, error.what())};
  }
  return numbers;
}

/// The gradient, and what earlier calls left.
std::vector<float> sum_of(const std::string& file, const std::string& residual_file) {
  std::vector<float> sum = finite_numbers(file);
  if (residual_file.empty()) return sum;
  const std::vector<float> residual = finite_numbers(residual_file);
  if (residual.size() != sum.size())
    fail("{}: {} numbers (the gradient has {}). Name the residual of this gradient.", residual_file,
         residual.size(), sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += residual[i];
    if (!std::isfinite(sum[i]))
      fail("{} and {}: number {} of their sum is {} (no finite number). Scale both down.", file,
           residual_file, i, sum[i]);
  }
  return sum;
}

double square(float number) { return static_cast<double>(number) * static_cast<double>(number); }

Compressed compressed(const std::string& file, const CompressArguments& typed,
                      const compress::Settings& settings) {
  Compressed result;
  result.residual = sum_of(file, typed.residual);
  const auto count = static_cast<std::int64_t>(result.residual.size());
  if (!typed.state.empty())
    result.state = read_state(typed.state, {settings.method, settings.block, count, {}});
  for (const float number : result.residual) result.energy += square(number);
  compress::Sparsifier sparsifier{settings, count, result.state};
  result.set = sparsifier.take(result.residual);
  compress::each_block(result.set, [&](std::size_t place, std::size_t at, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      result.energy_kept += square(result.set.values[at + i] + result.residual[place + i]);
  });
  result.state = sparsifier.state();
  result.threshold = sparsifier.last_threshold();
  result.payload = compress::encode(result.set, settings.index, settings.values);
  return result;
}

void write_results(const Options& options, const compress::Settings& settings,
                   const Compressed& result) {
  const CompressArguments& typed = options.compress;
  if (!options.out.empty())
    report::write_new_file(options.out,
                           [&](std::ostream& out) { write_bytes(out, result.payload); });
  if (!typed.residual_out.empty())
    replace_file(typed.residual_out, [&](std::ostream& out) {
      write_bytes(out, std::as_bytes(std::span{result.residual}));
    });
  if (!typed.state.empty())
    replace_file(typed.state, [&](std::ostream& out) {
      out << state_text({settings.method, settings.block, result.set.count, result.state});
    });
}

std::optional<double> share_of(double part, double whole) {
  return whole > 0 ? std::optional{part / whole} : std::nullopt;
}

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json{};
}

ordered_json json_of(const compress::SparseSet& set, std::size_t payload_bytes) {
  ordered_json json = report::record_header();
  json["count"] = set.count;
  json["kept"] = set.values.size();
  json["kept_blocks"] = set.blocks.size();
  json["bytes"] = payload_bytes;
  json["bytes_per_kept"] =
      or_null(share_of(static_cast<double>(payload_bytes), static_cast<double>(set.values.size())));
  return json;
}

std::string text_of(const Compressed& result, const compress::Settings& settings) {
  const double kept = static_cast<double>(result.set.values.size());
  const auto bytes = static_cast<double>(result.payload.size());
  std::string text = fmt::format(
      "{} of {} numbers ({:.3g}%) in {} blocks of {}, by {}\n{} as {} and {}",
      result.set.values.size(), result.set.count,
      100 * kept / static_cast<double>(result.set.count), result.set.blocks.size(), settings.block,
      to_string(settings.method), to_text(Bytes{static_cast<std::int64_t>(result.payload.size())}),
      to_string(settings.values), to_string(settings.index));
  if (const auto each = share_of(bytes, kept))
    text += fmt::format(": {:.3f} bytes a number", *each);
  text += '\n';
  if (const auto share = share_of(result.energy_kept, result.energy))
    text += fmt::format("{:.2f}% of the sum of squares\n", 100 * *share);
  return text;
}

void refuse_idle_options(const Options& options) {
  const CompressArguments& typed = options.compress;
  const std::pair<const char*, bool> idle[] = {
      {"--method", !typed.method.empty()},     {"--keep", !typed.keep.empty()},
      {"--block", !typed.block.empty()},       {"--values", !typed.values.empty()},
      {"--index", !typed.index.empty()},       {"--seed", !typed.seed.empty()},
      {"--residual", !typed.residual.empty()}, {"--residual-out", !typed.residual_out.empty()},
      {"--state", !typed.state.empty()},       {"--list", typed.list},
      {"--out", !options.out.empty()}};
  for (const auto& [option, is_typed] : idle)
    if (is_typed)
      fail("{}: it has no effect with --decode (a payload says what it is). Leave it out.", option);
}

/// The numbers of a set, zeros between, without room for all: a few bytes may say that there are
/// billions. Long stretches of zeros are skipped, which a file need not store.
class DenseWriter {
public:
  explicit DenseWriter(std::ostream& out) : out_{out} {}

  void write(const compress::SparseSet& set) {
    compress::each_block(set, [&](std::size_t place, std::size_t at, std::size_t size) {
      write_zeros(place);
      write_bytes(out_, std::as_bytes(std::span{set.values}.subspan(at, size)));
      next_ += size;
    });
    const auto count = static_cast<std::size_t>(set.count);
    if (count == next_) return;
    write_zeros(count - 1);  // a file ends where it was written last
    write_bytes(out_, std::span{zeros_}.first(sizeof(float)));
  }

private:
  static constexpr std::size_t kStretch = 1 << 14;

  void write_zeros(std::size_t end) {
    if (end - next_ < kStretch)
      write_bytes(out_, std::span{zeros_}.first((end - next_) * sizeof(float)));
    else
      out_.seekp(static_cast<std::streamoff>(end * sizeof(float)));
    next_ = end;
  }

  std::ostream& out_;
  std::size_t next_ = 0;  ///< number to be written
  std::vector<std::byte> zeros_ = std::vector<std::byte>(kStretch * sizeof(float));
};

Answer decode_command(const Options& options) {
  refuse_idle_options(options);
  const std::string& file = options.compress.decode;
  const std::string& target = options.files.front();
  report::require_new_file(target);
  constexpr auto kMost = static_cast<std::size_t>(compress::kMostNumbers) * 9;
  const std::vector<std::byte> payload = read_bytes(file, kMost);
  const compress::SparseSet set = compress::decode(payload, {.source = file});
  report::write_new_file(target, [&](std::ostream& out) { DenseWriter{out}.write(set); });
  if (options.json) return {report::json_text(json_of(set, payload.size()))};
  return {fmt::format("{} of {} numbers, all others 0\n", set.values.size(), set.count)};
}

}  // namespace

void add_compress_options(Arguments& command, CompressArguments& arguments) {
  command.option("--method", arguments.method, "block (default), threshold, topk or randomk");
  command.option("--keep", arguments.keep, "share of the numbers, as in 1% (default) or 0.01");
  command.option("--block", arguments.block,
                 "numbers kept together: 1, 2, 4, 8 or 16 (default 16; topk and randomk: 1)");
  command.option("--residual", arguments.residual, "what earlier calls left (.f32): added first");
  command.option("--residual-out", arguments.residual_out,
                 "write what is left now (.f32); an existing file is replaced");
  command.option("--state", arguments.state,
                 "the threshold and the number of calls: read where it exists, always written");
  command.option("--values", arguments.values, "f32 (default), bf16 or int8");
  command.option("--index", arguments.index, "gaps (default), coo32 or coo16");
  command.option("--seed", arguments.seed, "of randomk (default 1)");
  command.option("--decode", arguments.decode, "a payload: FILE is then the vector to write");
  command.flag("--list", arguments.list, "print the places of the numbers kept").takes_no_value();
}

Answer compress_command(const Options& options) {
  const CompressArguments& typed = options.compress;
  if (!typed.decode.empty()) return decode_command(options);
  const compress::Settings settings = settings_of(typed);
  if (!options.out.empty()) report::require_new_file(options.out);
  for (const std::string& file : {typed.residual_out, typed.state})
    if (!file.empty()) require_directory_of(file);
  const Compressed result = compressed(options.files.front(), typed, settings);
  write_results(options, settings, result);
  if (!options.json) {
    std::string text = text_of(result, settings);
    if (typed.list) text += fmt::format("{}\n", fmt::join(compress::places(result.set), " "));
    return {text};
  }
  ordered_json json = json_of(result.set, result.payload.size());
  json["energy_kept"] = or_null(share_of(result.energy_kept, result.energy));
  const bool has_threshold = settings.method != compress::Method::randomk;
  json["threshold"] = has_threshold ? ordered_json(result.threshold) : ordered_json{};
  json["next_threshold"] = settings.method == compress::Method::threshold
                               ? ordered_json(result.state.threshold)
                               : ordered_json{};
  if (typed.list) json["indices"] = compress::places(result.set);
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
