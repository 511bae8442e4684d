#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/index.hpp"
#include "profile/import/imported_profile.hpp"

namespace longhaul::profile {
namespace {

constexpr std::int64_t kMostNumber = std::int64_t{1} << 60;

/// One line, cut at commas outside quotes (names of kernels have commas).
struct LogLine {
  const std::string& source;
  std::size_t number = 0;
  std::vector<std::string_view> words;

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error{fmt::format("{}:{}: ", source, number) +
                fmt::format(format, std::forward<Args>(args)...)};
  }
  void split(std::string_view line) {
    words.clear();
    bool quoted = false;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (line[at] == '"') quoted = !quoted;
      if (line[at] != ',' || quoted) continue;
      words.push_back(line.substr(begin, at - begin));
      begin = at + 1;
    }
    words.push_back(line.substr(begin));
  }
  [[nodiscard]] std::int64_t integer(std::size_t word) const {
    std::int64_t value = 0;
    const std::string_view text = words[word];
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size() || value < 0 ||
        value > kMostNumber)
      refuse(
          "\"{}\" is no whole number (lines begin with a start and a duration in ns). Take what "
          "vTrain's profiler wrote.",
          cell_of(text.substr(0, 40)));
    return value;
  }
  [[nodiscard]] std::string_view unquoted(std::size_t word) const {
    std::string_view text = words[word];
    if (text.size() > 1 && text.starts_with('"') && text.ends_with('"'))
      text = text.substr(1, text.size() - 2);
    return text;
  }
};

/// What a TIMESTAMP begins; empty where one ends.
struct Begun {
  std::string part, block, operation;
};

std::optional<Begun> begun_by(std::string_view message) {
  const std::string_view layer = message.substr(std::min(message.rfind(' ') + 1, message.size()));
  const auto says = [&](std::string_view what) {
    return message.find(what) != std::string_view::npos;
  };
  Begun begun;
  if (says("forward start"))
    begun.block = "F";
  else if (says("backward start"))
    begun.block = "B";
  else if (says("WU start"))
    begun.block = "update";
  else
    return std::nullopt;
  begun.operation = cell_of(layer);
  begun.part = layer == "embeddings"                 ? "embedding"
               : layer == "logit" || layer == "loss" ? "head"
               : layer == "transformer"              ? "layer"
                                                     : begun.operation;
  return begun;
}

/// "hidden=1024 tensor=2 batch=8" of "trace_1024_2_8"; otherwise empty.
std::string shape_of(std::string_view name) {
  constexpr std::string_view kBegin = "trace_";
  if (!name.starts_with(kBegin)) return {};
  std::vector<std::int64_t> numbers;
  name.remove_prefix(kBegin.size());
  while (!name.empty() && numbers.size() < 4) {
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (problem != std::errc{}) return {};
    numbers.push_back(value);
    name.remove_prefix(to_size(end - name.data()));
    if (name.starts_with('_')) name.remove_prefix(1);
  }
  if (numbers.size() != 3) return {};
  return fmt::format("hidden={} tensor={} batch={}", numbers[0], numbers[1], numbers[2]);
}

class LogReader {
public:
  LogReader(const std::string& source, std::string shape)
      : line_{source, 0, {}}, shape_{std::move(shape)} {}

  void take(std::string_view text, std::size_t number) {
    line_.number = number;
    line_.split(text);
    if (line_.words.size() < 4)
      line_.refuse(
          "there are {} values (a start, a duration, a kind and more). Take what vTrain's "
          "profiler wrote.",
          line_.words.size());
    const std::int64_t start = line_.integer(0), length = line_.integer(1);
    const std::string_view kind = line_.words[2];
    if (kind == "TIMESTAMP") {
      begin(line_.unquoted(3));
    } else if (kind == "RUNTIME" || kind == "DRIVER") {
      if (current_ >= 0) run_of_launch_[line_.integer(line_.words.size() - 1)] = current_;
    } else if (kind == "KERNEL" || kind == "CONC KERNEL") {
      add_kernel(std::string{line_.unquoted(3)}, Duration{start}, Duration{length});
    } else if (kind != "MEMCPY" && kind != "MEMSET") {
      line_.refuse(
          "\"{}\" is no kind of activity (TIMESTAMP, RUNTIME, DRIVER, KERNEL, CONC KERNEL, "
          "MEMCPY or MEMSET). Take what vTrain's profiler wrote.",
          cell_of(kind.substr(0, 40)));
    }
  }

  [[nodiscard]] ImportedProfile take_profile() {
    std::erase_if(runs_, [](const OperatorRun& run) { return run.kernels.empty(); });
    for (OperatorRun& run : runs_) std::ranges::stable_sort(run.kernels, {}, &KernelRun::start);
    return imported(runs_, std::max<std::size_t>(1, iterations_));
  }
  [[nodiscard]] bool empty() const {
    return std::ranges::all_of(runs_, [](const OperatorRun& run) { return run.kernels.empty(); });
  }

private:
  void begin(std::string_view message) {
    auto begun = begun_by(message);
    current_ = begun ? static_cast<std::ptrdiff_t>(runs_.size()) : -1;
    if (!begun) return;
    if (begun->block == "F" && begun->part == "embedding") ++iterations_;
    runs_.push_back({begun->part, begun->block, begun->operation, shape_, "f16", {}});
  }

  /// Kernels of launches outside of operators are left out, as vTrain leaves them out.
  void add_kernel(std::string name, Duration start, Duration length) {
    const auto run = run_of_launch_.find(line_.integer(line_.words.size() - 1));
    if (run == run_of_launch_.end()) return;
    runs_[to_size(run->second)].kernels.push_back({std::move(name), start, length});
  }

  LogLine line_;
  std::string shape_;
  std::vector<OperatorRun> runs_;
  std::map<std::int64_t, std::ptrdiff_t> run_of_launch_;
  std::ptrdiff_t current_ = -1;
  std::size_t iterations_ = 0;
};

}  // namespace

ImportedProfile read_cupti_log(std::string_view text, const std::string& source,
                               std::string_view name) {
  LogReader reader{source, shape_of(name)};
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) reader.take(line, number);
  }
  if (reader.empty())
    fail(
        "{}: no kernel in it belongs to an operator (TIMESTAMP lines begin operators, RUNTIME "
        "lines "
        "launch kernels). Take a whole log of vTrain's profiler.",
        source);
  return reader.take_profile();
}

bool is_cupti_log(std::string_view text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  LogLine words{{}, 1, {}};
  words.split(line);
  return words.words.size() > 3 && !words.words[0].empty() && words.words[0][0] >= '0' &&
         words.words[0][0] <= '9';
}

}  // namespace longhaul::profile
