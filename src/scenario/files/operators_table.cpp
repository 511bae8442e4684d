#include "scenario/files/operators_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "scenario/model_operators.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::int64_t kMostTime = std::int64_t{1} << 44;  // ns of a call: 4.9 hours
constexpr std::int64_t kMostCalls = 1 << 10;

/// Sizes of a matrix product, as the table names them.
struct ProductSize {
  std::int64_t m = 0, n = 0, k = 0;
  friend bool operator==(const ProductSize&, const ProductSize&) = default;
};

/// A line of the table: one call of a block.
struct ProfiledCall {
  std::string part, block, operation;
  ProductSize size;  ///< of a gemm
  std::int64_t calls = 0, median = 0;
  [[nodiscard]] std::int64_t time() const { return calls * median; }
};

std::int64_t read_count(const CsvLine& line, std::size_t word, const char* what,
                        std::int64_t most) {
  const std::string_view text = line.words[word];
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < 0 || value > most)
    line.refuse("{} \"{}\" is no whole number from 0 to {}. Take what bench_profile wrote.", what,
                shown(text), most);
  return value;
}

/// The number after "m=" in "m=64 n=192 k=64 nt"; 0 where there is none.
std::int64_t number_after(std::string_view shape, std::string_view key) {
  const std::size_t at = (' ' + std::string{shape}).find(' ' + std::string{key});
  if (at == std::string_view::npos) return 0;
  std::int64_t value = 0;
  const std::string_view text = shape.substr(at + key.size());
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<ProfiledCall> read_calls(std::string_view csv, const std::string& source) {
  const std::array<std::string_view, 8> names{"part", "block", "operator", "shape",
                                              "type", "calls", "n",        "median_ns"};
  std::vector<ProfiledCall> calls;
  bool has_names = false;
  each_csv_line(csv, source, [&](const CsvLine& line) {
    if (line.words.size() < names.size())
      line.refuse("{} columns (part to median_ns are {}). Take the operators.csv of bench_profile.",
                  line.words.size(), names.size());
    if (!std::exchange(has_names, true)) {
      if (!std::ranges::equal(names, std::span{line.words}.first(names.size())))
        line.refuse(
            "the columns are not those of operators.csv (part,block,operator,shape,type,"
            "calls,n,median_ns). Take the one of bench_profile.");
      return;
    }
    const std::string_view shape = line.words[3];
    calls.push_back(
        {std::string{line.words[0]},
         std::string{line.words[1]},
         std::string{line.words[2]},
         {number_after(shape, "m="), number_after(shape, "n="), number_after(shape, "k=")},
         read_count(line, 5, "calls", kMostCalls),
         read_count(line, 7, "median_ns", kMostTime)});
  });
  return calls;
}

/// A block of the table, and the time of an operator that is its.
struct TableBlock {
  const char* name;
  Duration Operator::*time;
};
constexpr std::array kTableBlocks{
    TableBlock{"F", &Operator::forward}, TableBlock{"R", &Operator::recompute},
    TableBlock{"D", &Operator::dgrad}, TableBlock{"W", &Operator::wgrad}};

/// Gives the operators of one kind of layer the times of one of its blocks.
class BlockReader {
public:
  BlockReader(const std::vector<ProfiledCall>& calls, const std::string& part,
              const TableBlock& block, const std::string& source, const LayerWidths& widths)
      : part_{part}, block_{block}, source_{source}, widths_{widths} {
    for (const ProfiledCall& call : calls)
      if (call.part == part && call.block == block.name) mine_.push_back(call);
  }

  [[nodiscard]] bool empty() const { return mine_.empty(); }

  /// `operators`: of the layer; returns the time that is none of theirs.
  Duration read(std::vector<Operator>& operators) {
    std::int64_t rest = 0;
    for (const ProfiledCall& call : mine_) rest += call.time();
    int norms_left = static_cast<int>(
        std::ranges::count(operators, OperatorKind::normalization, &Operator::kind));
    std::int64_t of_norms =
        time_of({"rms_norm", "rms_norm_input_gradient", "rms_norm_weight_gradient"});
    for (Operator& each : operators) {
      std::int64_t time = 0;
      if (each.kind == OperatorKind::normalization) {
        time = of_norms / norms_left--;
        of_norms -= time;
      } else if (each.kind == OperatorKind::matmul) {
        time = time_of_product(each.name);
      } else if (each.kind == OperatorKind::attention) {
        time = time_of({"attention", "attention_gradient", "rotary"});
      } else if (each.name == "embedding") {
        time = time_of({"embed", "embed_gradient"});
      } else {
        time = time_of({each.name, each.name + "_gradient",
                        each.name == "loss" ? "cross_entropy" : each.name});
      }
      each.*block_.time = Duration{time};
      rest -= time;
    }
    return Duration{rest};
  }

private:
  [[nodiscard]] std::int64_t time_of(const std::vector<std::string>& operations) const {
    std::int64_t sum = 0;
    for (const ProfiledCall& call : mine_)
      if (std::ranges::find(operations, call.operation) != operations.end()) sum += call.time();
    return sum;
  }

  /// Of a linear map's product in this block.
  [[nodiscard]] ProductSize size_of(const std::string& name) const {
    const std::int64_t h = widths_.hidden;
    const std::map<std::string, std::pair<std::int64_t, std::int64_t>> maps{
        {"qkv", {h, widths_.qkv}},
        {"output", {h, h}},
        {"gate_up", {h, 2 * std::int64_t{widths_.intermediate}}},
        {"down", {widths_.intermediate, h}},
        {"head", {h, widths_.vocabulary}}};
    const auto [in, out] = maps.at(name);
    if (block_.time == &Operator::dgrad) return {widths_.tokens, in, out};
    if (block_.time == &Operator::wgrad) return {out, in, widths_.tokens};
    return {widths_.tokens, out, in};
  }

  /// Calls of one size that differ otherwise (one adds to its result) count with their mean.
  [[nodiscard]] std::int64_t time_of_product(const std::string& name) const {
    const ProductSize size = size_of(name);
    std::int64_t sum = 0;
    std::int64_t count = 0;
    for (const ProfiledCall& call : mine_) {
      if (call.operation != "gemm" || call.size != size) continue;
      sum += call.time();
      count += call.calls;
    }
    if (count > 0) return sum / count;
    if (block_.time == &Operator::recompute) return 0;  // the last product of a layer is not needed
    fail(
        "{}: there is no gemm of m={} n={} k={} in block {} of part {} (\"{}\" of the scenario's "
        "model takes one). Name the operators.csv of this model.",
        source_, size.m, size.n, size.k, block_.name, part_, name);
  }

  const std::string& part_;
  const TableBlock& block_;
  const std::string& source_;
  const LayerWidths& widths_;
  std::vector<ProfiledCall> mine_;
};

/// The operators of one kind of layer; `operators` are the model's.
std::vector<Operator> read_layer(const std::vector<ProfiledCall>& calls, const std::string& part,
                                 const std::string& source, const LayerWidths& widths,
                                 std::vector<Operator> operators) {
  Operator rest{"rest", OperatorKind::elementwise, operators.front().layer, {}, {}, {}, {}, {}};
  for (const TableBlock& block : kTableBlocks) {
    BlockReader reader{calls, part, block, source, widths};
    if (!reader.empty()) {
      rest.*block.time = reader.read(operators);
    } else if (block.time == &Operator::recompute) {
      for (Operator& each : operators) each.recompute = each.forward;
      rest.recompute = rest.forward;
    } else if (block.time == &Operator::forward) {
      fail(
          "{}: there is no block F of part {} (the scenario's model has such a layer). Name the "
          "operators.csv of this model.",
          source, part);
    } else {
      for (Operator& each : operators) each.*block.time = Duration{};
    }
  }
  const auto says = [&](const TableBlock& block) { return rest.*block.time > Duration::zero(); };
  if (std::ranges::any_of(kTableBlocks, says)) operators.push_back(std::move(rest));
  return operators;
}

}  // namespace

std::vector<Operator> read_operators_table(std::string_view csv, const std::string& source,
                                           const Model& model) {
  const std::vector<ProfiledCall> calls = read_calls(csv, source);
  const LayerWidths widths = layer_widths(model);
  std::map<std::string, std::vector<Operator>> known;
  std::vector<Operator> all;
  const std::vector<Operator> of_model = model_operators(model);
  for (auto first = of_model.begin(); first != of_model.end();) {
    const auto last = std::find_if(
        first, of_model.end(), [&](const Operator& each) { return each.layer != first->layer; });
    const bool is_end = first->layer == 0 || first->layer + 1 == model.layers;
    const std::string part = !is_end || model.layers == 1 ? "layer"
                             : first->layer == 0          ? "embedding"
                                                          : "head";
    auto at = known.find(part);
    if (at == known.end())
      at = known.emplace(part, read_layer(calls, part, source, widths, {first, last})).first;
    for (Operator each : at->second) {
      each.layer = first->layer;
      all.push_back(std::move(each));
    }
    first = last;
  }
  return all;
}

}  // namespace longhaul::scenario
