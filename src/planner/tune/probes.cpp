#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "base/program/arguments.hpp"
#include "planner/tune/surrogate.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::planner {
namespace {

constexpr double kLargestBatch = 1e5;   // tune tries every batch up to the largest
constexpr double kLongestProbe = 1e15;  // ns
constexpr std::size_t kFewestProbes = 3, kMostProbes = 1000;
constexpr std::array kProbeColumns{"model", "batch", "compression_rate", "g"};
using ProbeColumns = std::array<std::size_t, kProbeColumns.size()>;

ProbeColumns columns_of(const scenario::CsvLine& head) {
  ProbeColumns columns{};
  for (std::size_t i = 0; i < kProbeColumns.size(); ++i) {
    const auto found = std::ranges::find(head.words, std::string_view{kProbeColumns[i]});
    if (found == head.words.end())
      head.refuse(
          "there is no column {} (a table of probes has model,version,batch,"
          "compression_rate,g). Name the columns in its first line.",
          kProbeColumns[i]);
    columns[i] = static_cast<std::size_t>(found - head.words.begin());
  }
  return columns;
}

/// When it is said how long each took.
std::optional<std::size_t> took_column_of(const scenario::CsvLine& head) {
  const auto found = std::ranges::find(head.words, std::string_view{"took_ns"});
  if (found == head.words.end()) return std::nullopt;
  return static_cast<std::size_t>(found - head.words.begin());
}

std::string_view word_at(const scenario::CsvLine& line, std::size_t column) {
  if (column >= line.words.size())
    line.refuse("{} words are too few. Give one for each column.", line.words.size());
  return line.words[column];
}

double number_at(const scenario::CsvLine& line, std::size_t column, double least, double most,
                 const char* what) {
  const std::string_view word = word_at(line, column);
  const std::optional<double> value = read_double(std::string{word});
  if (!value || !(*value >= least && *value <= most))
    line.refuse("{} is \"{}\" (no number from {} to {}). Check the probe.", what, word, least,
                most);
  return *value;
}

char plain_letter(char letter) {
  return letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

}  // namespace

bool is_same_model(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, {}, plain_letter, plain_letter);
}

ProbeTable read_probes(std::string_view csv, const std::string& source) {
  ProbeTable table;
  std::optional<ProbeColumns> columns;
  std::optional<std::size_t> took;
  scenario::each_csv_line(csv, source, [&](const scenario::CsvLine& line) {
    if (!columns) {
      columns = columns_of(line);
      took = took_column_of(line);
      if (took) table.took = Duration::zero();
      return;
    }
    const std::string_view model = word_at(line, (*columns)[0]);
    if (table.probes.empty()) table.model = model;
    if (!is_same_model(model, table.model))
      line.refuse("a probe of {} after those of {}. Keep to one model.", model, table.model);
    table.probes.push_back({number_at(line, (*columns)[1], 1e-3, kLargestBatch, "batch"),
                            number_at(line, (*columns)[2], 0, 1, "compression_rate"),
                            number_at(line, (*columns)[3], -1e6, 1e6, "g")});
    if (took)
      *table.took += Duration{std::llround(number_at(line, *took, 0, kLongestProbe, "took_ns"))};
    if (table.probes.size() > kMostProbes)
      line.refuse("more than {} probes. Leave some out.", kMostProbes);
  });
  if (table.probes.size() < kFewestProbes)
    fail("{}: {} probes say nothing of a surface. Give {} or more.", source, table.probes.size(),
         kFewestProbes);
  return table;
}

ProbeSearch::ProbeSearch(int least, int most, std::uint64_t seed)
    : least_{least}, most_{most}, random_{seed} {}

/// Expected improvement on the least g so far, at 200 batches at most.
ProbeSearch::Setting ProbeSearch::next() {
  constexpr double kMostRate = 0.999;
  constexpr int kTried = 200;
  Setting setting{static_cast<int>(random_.between(least_, most_)), kMostRate * random_.uniform()};
  if (probes_.size() < kFewestProbes) return setting;
  const Surrogate surrogate{probes_};
  const double best = std::ranges::min_element(probes_, {}, &Probe::g)->g;
  double most = -1;
  const int steps = std::min(kTried, most_ - least_ + 1);
  for (int i = 0; i < steps; ++i) {
    const int batch = least_ + static_cast<int>(std::int64_t{most_ - least_} * i / (steps - 1));
    const double promised =
        expected_improvement(surrogate.estimate(batch, setting.compression_rate), best);
    if (promised <= most) continue;
    most = promised;
    setting.batch = batch;
  }
  return setting;
}

}  // namespace longhaul::planner
