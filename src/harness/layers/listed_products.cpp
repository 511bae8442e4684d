#include <charconv>
#include <map>
#include <optional>
#include <tuple>

#include "base/statistics/sample.hpp"
#include "base/text_file.hpp"
#include "harness/layers/layer_parts.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::harness {
namespace {

constexpr double kMostNumbers = 4e9;  // of one matrix

/// Where the columns stand in a line.
struct Columns {
  std::size_t m, n, k;
  std::optional<std::size_t> median;
};

Columns columns_of(const scenario::CsvLine& header) {
  std::map<std::string_view, std::size_t> at;
  for (std::size_t i = 0; i < header.words.size(); ++i) at.emplace(header.words[i], i);
  for (const char* name : {"m", "n", "k"})
    if (!at.contains(name)) header.refuse("no column {} (a list of products has m, n, k).", name);
  Columns columns{at.at("m"), at.at("n"), at.at("k"), std::nullopt};
  if (const auto found = at.find("median_ns"); found != at.end()) columns.median = found->second;
  return columns;
}

template <typename Number>
Number number_in(const scenario::CsvLine& line, std::size_t column, const char* name,
                 Number least) {
  if (column >= line.words.size()) line.refuse("no {} (the line ends before it).", name);
  const std::string_view word = line.words[column];
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !(value >= least))
    line.refuse("{} = '{}' is no number from {}.", name, word, least);
  return value;
}

}  // namespace

std::vector<ListedProduct> read_products(const std::filesystem::path& file) {
  const std::string text = read_text_file(file);
  const std::string source = file.string();
  std::optional<Columns> columns;
  std::map<std::tuple<int, int, int>, std::size_t> known;
  std::vector<ListedProduct> products;
  scenario::each_csv_line(text, source, [&](const scenario::CsvLine& line) {
    if (!columns) {
      columns = columns_of(line);
      return;
    }
    if (columns->m < line.words.size() && line.words[columns->m].empty()) return;
    ListedProduct one{number_in(line, columns->m, "m", 1), number_in(line, columns->n, "n", 1),
                      number_in(line, columns->k, "k", 1), 0};
    for (const auto& [a, b] : {std::pair{one.m, one.n}, {one.n, one.k}, {one.m, one.k}})
      if (static_cast<double>(a) * b > kMostNumbers)
        line.refuse("{} x {} x {} has a matrix of more than {:g} numbers.", one.m, one.n, one.k,
                    kMostNumbers);
    if (columns->median) one.source_ns = number_in(line, *columns->median, "median_ns", 0.0);
    if (known.emplace(std::tuple{one.m, one.n, one.k}, products.size()).second)
      products.push_back(one);
  });
  if (products.empty()) fail("{} lists no products. Give lines with m, n, k.", source);
  return products;
}

std::string products_csv(const std::vector<ListedProduct>& products,
                         const std::vector<LayerPart>& parts) {
  std::string csv = "m,n,k,median_ns,min_ns,source_ns\n";
  for (std::size_t i = 0; i < products.size(); ++i) {
    const ListedProduct& one = products[i];
    const SampleSummary times = summarize(parts.at(i).seconds);
    csv += fmt::format("{},{},{},{:.0f},{:.0f},", one.m, one.n, one.k, 1e9 * times.median,
                       1e9 * times.min);
    csv += one.source_ns > 0 ? fmt::format("{:.0f}\n", one.source_ns) : std::string{"\n"};
  }
  return csv;
}

}  // namespace longhaul::harness
