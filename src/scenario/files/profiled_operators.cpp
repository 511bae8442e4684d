#include "scenario/files/profiled_operators.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::scenario {
namespace {

/// Numbers of "m=64 n=192 k=64 nt" by name.
std::map<std::string, double> numbers_of(std::string_view shape) {
  std::map<std::string, double> numbers;
  while (!shape.empty()) {
    const std::size_t end = std::min(shape.find(' '), shape.size());
    const std::string_view word = shape.substr(0, end);
    shape.remove_prefix(std::min(end + 1, shape.size()));
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    std::int64_t value = 0;
    (void)std::from_chars(word.data() + equals + 1, word.data() + word.size(), value);
    numbers[std::string{word.substr(0, equals)}] = static_cast<double>(value);
  }
  return numbers;
}

/// How far two shapes lie apart: of all sides together, in factors.
double distance(std::string_view a, std::string_view b) {
  const auto of_a = numbers_of(a), of_b = numbers_of(b);
  double sum = 0;
  for (const auto& [name, value] : of_a) {
    const auto other = of_b.find(name);
    sum += other == of_b.end()
               ? 100
               : std::abs(std::log(std::max(1.0, value) / std::max(1.0, other->second)));
  }
  return sum;
}

bool is_collective(const std::string& operation) {
  return operation == "all_reduce" || operation == "all_gather" || operation == "reduce_scatter";
}

/// Gives the calls of one part their times.
class PartReader {
public:
  PartReader(const OperatorProfile& profile, const Scenario& scenario, std::string type)
      : profile_{profile}, scenario_{scenario}, type_{std::move(type)} {}

  /// The operators of a part whose calls are `calls`; `tasks` gets theirs.
  [[nodiscard]] std::vector<Operator> read(const std::string& part,
                                           const std::vector<OperatorCall>& calls,
                                           std::vector<OperatorTasks>& tasks,
                                           Duration& update) const {
    std::vector<Operator> operators;
    for (const PartOperator& each : operators_of_part(scenario_, part)) {
      Operator made{each.name, each.kind, -1, Bytes{std::llround(2 * each.weights)},
                    {},        {},        {}, {}};
      made.tasks = static_cast<int>(tasks.size());
      operators.push_back(std::move(made));
      tasks.emplace_back();
    }
    const bool again = has_block(part, "R");
    for (const OperatorCall& call : calls) {
      if (call.part != part || (call.block == "R" && !again)) continue;
      const Duration time = time_of(call);
      if (call.block == "update") {
        update += time;
        continue;
      }
      Operator& own = *std::ranges::find(operators, call.below, &Operator::name);
      own.*pass_of(call.block) += time;
      add_tasks(call, time, tasks[to_size(own.tasks)][index(kind_of(call.block))]);
    }
    if (!again) copy_forward(operators, tasks);
    return operators;
  }

private:
  static Duration Operator::*pass_of(const std::string& block) {
    return block == "F"   ? &Operator::forward
           : block == "R" ? &Operator::recompute
           : block == "D" ? &Operator::dgrad
                          : &Operator::wgrad;
  }
  static BlockKind kind_of(const std::string& block) {
    return block == "F"   ? BlockKind::F
           : block == "R" ? BlockKind::R
           : block == "D" ? BlockKind::D
                          : BlockKind::W;
  }

  /// R is needed with recomputation; otherwise it is as F unless the profile has it.
  [[nodiscard]] bool has_block(const std::string& part, const std::string& block) const {
    return scenario_.memory.recompute ||
           std::ranges::any_of(profile_.operators.rows, [&](const ProfileRow& row) {
             return row.part == part && row.block == block;
           });
  }
  static void copy_forward(std::vector<Operator>& operators, std::vector<OperatorTasks>& tasks) {
    for (Operator& each : operators) {
      each.recompute = each.forward;
      OperatorTasks& own = tasks[to_size(each.tasks)];
      own[index(BlockKind::R)] = own[index(BlockKind::F)];
    }
  }

  /// Of one call.
  [[nodiscard]] Duration time_of(const OperatorCall& call) const {
    ProfileRow wanted{call.part,
                      call.block,
                      call.operation,
                      call.shape,
                      call.block == "update" ? call.type : type_,
                      1,
                      {},
                      0};
    if (const ProfileRow* const row = profile_.operators.find(wanted)) return row->median;
    if (is_collective(call.operation))
      if (const auto time = time_of_collective(call)) return *time;
    fail(
        "{}: there is no {} of {} in {} (block {} of part {} of the scenario's model takes one). {}"
        "Measure it, as `longhaul profile needed` lists it.",
        profile_.operators.source, call.operation, call.shape, wanted.type, call.block, call.part,
        nearest_shapes(profile_.operators, wanted));
  }
  [[nodiscard]] std::optional<Duration> time_of_collective(const OperatorCall& call) const {
    auto numbers = numbers_of(call.shape);
    const auto whole = [&](const char* name) { return std::llround(numbers[name]); };
    return profile_.collectives.time(call.operation, whole("ranks"), whole("nodes"),
                                     whole("bytes"));
  }

  /// The kernels of the call share its time in proportion to theirs and the gaps after them.
  void add_tasks(const OperatorCall& call, Duration time, std::vector<OperatorTask>& to) const {
    const std::vector<TaskRow> rows = profile_.tasks.of(call.operation, call.shape);
    Duration length{};
    for (const TaskRow& row : rows) length += row.median + row.gap;
    if (length == Duration::zero()) {
      to.push_back({call.operation, time});
      return;
    }
    Duration end{}, before{};
    for (const TaskRow& row : rows) {
      end += row.median + row.gap;
      const Duration now = portion(time, end, length);
      to.push_back({row.kernel, now - before});
      before = now;
    }
  }

  const OperatorProfile& profile_;
  const Scenario& scenario_;
  std::string type_;
};

}  // namespace

std::string type_of_profile(const ProfileTable& profile, const Model& model) {
  std::set<std::string> types;
  for (const ProfileRow& row : profile.rows)
    if (row.block != "update") types.insert(row.type);
  const std::string wanted = type_name(model);
  if (model.precision && !types.contains(wanted))
    fail(
        "{}: the profile is of {}, model.precision = \"{}\" needs {} (times of one say nothing of "
        "the other). Take a profile of that precision, or change model.precision.",
        profile.source, shown(fmt::format("{}", fmt::join(types, ", "))),
        to_string(*model.precision), wanted);
  if (model.precision) return wanted;
  if (types.size() != 1)
    fail(
        "{}: the profile is of {} (blocks are of one). Set model.precision = \"fp32\", \"fp16\" or "
        "\"bf16\".",
        profile.source, shown(fmt::format("{}", fmt::join(types, " and "))));
  return *types.begin();
}

std::string nearest_shapes(const ProfileTable& profile, const ProfileRow& wanted) {
  std::vector<std::pair<double, std::string>> known;
  std::set<std::string> operations;
  for (const ProfileRow& row : profile.rows) {
    operations.insert(row.operation);
    if (row.operation != wanted.operation) continue;
    const std::string text = row.type == wanted.type ? row.shape : row.shape + " in " + row.type;
    known.emplace_back(distance(wanted.shape, row.shape) + (row.type == wanted.type ? 0 : 1000),
                       text);
  }
  if (known.empty())
    return fmt::format("It has no {} at all ({}). ", wanted.operation,
                       shown(fmt::format("{}", fmt::join(operations, ", "))));
  std::ranges::sort(known);
  const auto repeated = std::ranges::unique(known);
  known.erase(repeated.begin(), repeated.end());
  std::vector<std::string> nearest;
  for (const auto& [far, text] : known)
    if (nearest.size() < 3) nearest.push_back(shown(text));
  return fmt::format("The nearest that it has: {}. ", fmt::join(nearest, "; "));
}

ProfiledOperators profiled_operators(const OperatorProfile& profile, const Scenario& scenario) {
  const Model& model = *scenario.model;
  Scenario with_recompute = scenario;  // its R is read where the profile has one
  with_recompute.memory.recompute = true;
  Scenario typed = with_recompute;
  const std::string type = type_of_profile(profile.operators, model);
  typed.model->precision = type == "f32"   ? Precision::fp32
                           : type == "f16" ? Precision::fp16
                                           : Precision::bf16;
  const std::vector<OperatorCall> calls = calls_of_model(typed);
  const PartReader reader{profile, scenario, type};
  auto tasks = std::make_shared<std::vector<OperatorTasks>>();
  std::map<std::string, std::pair<std::vector<Operator>, Duration>> parts;
  ProfiledOperators made;
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::string part = part_of_layer(model, layer);
    auto known = parts.find(part);
    if (known == parts.end()) {
      Duration update{};
      std::vector<Operator> operators = reader.read(part, calls, *tasks, update);
      known = parts.emplace(part, std::pair{std::move(operators), update}).first;
    }
    for (Operator each : known->second.first) {
      each.layer = layer;
      made.all.push_back(std::move(each));
    }
    made.update.push_back(known->second.second);
  }
  made.tasks = std::move(tasks);
  return made;
}

namespace {

/// Of a product's shape the number that a side divides: [m, n] = [m, k] [k, n] of the layer's map
/// (nt: tokens, out, in), of its dgrad (nn: tokens, in, out), and of its wgrad (tn: out, in,
/// tokens).
std::string_view divided_number(const OperatorCall& call, PieceSide side) {
  const bool of_tokens = side == PieceSide::tokens;
  if (call.operation == "gemm") {
    if (call.shape.find(" tn") != std::string::npos) return of_tokens ? "k" : "m";
    return of_tokens ? "m" : "n";
  }
  if (call.shape.starts_with("rows=")) return of_tokens ? "rows" : "width";
  if (call.shape.starts_with("count=")) return "count";
  if (call.shape.starts_with("batch=")) return of_tokens ? "batch" : "heads";
  return {};
}

const char* name_of_block(BlockKind work) {
  switch (work) {
    case BlockKind::R: return "R";
    case BlockKind::D: return "D";
    case BlockKind::W: return "W";
    default: return "F";
  }
}

}  // namespace

std::optional<std::string> shape_of_piece(const OperatorCall& call, PieceSide side, int count) {
  const std::string_view number = divided_number(call, side);
  if (number.empty()) return std::nullopt;
  std::vector<std::string> words;
  bool is_divided = false;
  for (std::string_view rest = call.shape; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, std::min(equals, word.size()));
    if (equals == std::string_view::npos ||
        (name != number && !(number == "heads" && name == "kv_heads"))) {
      words.emplace_back(word);
      continue;
    }
    std::int64_t value = 0;
    (void)std::from_chars(word.data() + equals + 1, word.data() + word.size(), value);
    if (value % count != 0) return std::nullopt;
    words.push_back(fmt::format("{}={}", name, value / count));
    is_divided = true;
  }
  if (!is_divided) return std::nullopt;
  return fmt::format("{}", fmt::join(words, " "));
}

PieceTimes::PieceTimes(const ProfileTable& profile, const Scenario& scenario)
    : type_{type_of_profile(profile, *scenario.model)} {
  for (const ProfileRow& row : profile.rows)
    times_.try_emplace({row.operation, row.shape, row.type}, row.median);
  Scenario with_recompute = scenario;
  with_recompute.memory.recompute = true;
  calls_ = calls_of_model(with_recompute);
  for (int layer = 0; layer < scenario.model->layers; ++layer)
    part_of_layer_.emplace_back(part_of_layer(*scenario.model, layer));
}

std::optional<Duration> PieceTimes::of(const Operator& whole, BlockKind work, PieceSide side,
                                       int count) const {
  if (whole.layer < 0 || at(whole.layer) >= part_of_layer_.size()) return std::nullopt;
  Duration sum{};
  for (const OperatorCall& call : calls_) {
    if (call.part != part_of_layer_[at(whole.layer)] || call.below != whole.name ||
        call.block != name_of_block(work))
      continue;
    const std::optional<std::string> shape =
        count == 1 ? call.shape : shape_of_piece(call, side, count);
    if (!shape) return std::nullopt;
    const auto known = times_.find({call.operation, *shape, type_});
    if (known == times_.end()) return std::nullopt;
    sum += known->second;
  }
  if (sum == Duration::zero()) return std::nullopt;
  return sum;
}

}  // namespace longhaul::scenario
