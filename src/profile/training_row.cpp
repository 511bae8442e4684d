#include "profile/training_row.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/index.hpp"
#include "base/suggest.hpp"
#include "base/unit_text.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::profile {
namespace {

using scenario::CsvLine;

constexpr int kMostOfAnything = 1 << 24;

/// The columns of a header, by name.
class Columns {
public:
  explicit Columns(const CsvLine& header) {
    for (std::size_t i = 0; i < header.words.size(); ++i) at_.emplace(header.words[i], i);
  }
  [[nodiscard]] bool has(const std::string& name) const { return at_.contains(name); }
  [[nodiscard]] std::string_view text(const CsvLine& line, const std::string& name) const {
    const auto found = at_.find(name);
    if (found == at_.end())
      line.refuse("the column \"{}\" is missing (every row needs it). Add it to the header.", name);
    if (found->second >= line.words.size())
      line.refuse("the row ends before the column \"{}\" ({} values). Give a value for each.", name,
                  line.words.size());
    return line.words[found->second];
  }
  [[nodiscard]] int count(const CsvLine& line, const std::string& name) const {
    const std::string_view word = text(line, name);
    int value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || value < 1 ||
        value > kMostOfAnything)
      line.refuse("{} is \"{}\" (it should be a whole number from 1 to {}). Correct it.", name,
                  scenario::shown(word), kMostOfAnything);
    return value;
  }
  template <ListedEnum Enum>
  [[nodiscard]] Enum choice(const CsvLine& line, const std::string& name) const {
    const std::string_view word = text(line, name);
    for (const Enum value : every<Enum>())
      if (word == to_string(value)) return value;
    line.refuse("{} is \"{}\". {}", name, scenario::shown(word),
                suggestion(word, every_name<Enum>()));
  }

private:
  std::map<std::string, std::size_t, std::less<>> at_;
};

std::optional<Duration> measured_of(const CsvLine& line, const Columns& columns) {
  if (!columns.has("iteration_ms")) return std::nullopt;
  const std::string_view word = columns.text(line, "iteration_ms");
  if (word.empty()) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !(value > 0) || value > 1e9)
    line.refuse("iteration_ms is \"{}\" (it should be milliseconds above 0). Correct it.",
                scenario::shown(word));
  return Duration{std::llround(value * 1e6)};
}

void check_batch(const CsvLine& line, const TrainingRow& row) {
  const std::int64_t unit = std::int64_t{row.data} * row.micro_batch;
  if (row.global_batch % unit == 0) return;
  const std::int64_t below = row.global_batch / unit * unit;
  line.refuse("a global batch of {} does not divide by {} replicas x {} sequences. Take {}{}.",
              row.global_batch, row.data, row.micro_batch,
              below > 0 ? fmt::format("{} or ", below) : std::string{}, below + unit);
}

void check_layout(const CsvLine& line, const TrainingRow& row) {
  if (std::int64_t{row.tensor} * row.data * row.pipeline != row.gpus)
    line.refuse("{} x {} x {} ranks are not {} GPUs (tensor x data x pipeline). Correct one.",
                row.tensor, row.data, row.pipeline, row.gpus);
  if (row.hidden % row.heads != 0)
    line.refuse("hidden = {} does not divide by {} heads. Correct one.", row.hidden, row.heads);
  if (row.heads % row.tensor != 0 || row.intermediate % row.tensor != 0)
    line.refuse("tensor = {} does not divide {} heads and a width of {}. Take one that does.",
                row.tensor, row.heads, row.intermediate);
  if (row.heads % row.kv_heads != 0)
    line.refuse("heads = {} does not divide by kv_heads = {}. Correct one.", row.heads,
                row.kv_heads);
  if (row.pipeline * row.chunks > row.layers)
    line.refuse("{} stages of {} chunks hold {} layers (a chunk needs one). Take fewer.",
                row.pipeline, row.chunks, row.layers);
  if (row.schedule == RowSchedule::accumulate && row.pipeline > 1)
    line.refuse("schedule = accumulate has no pipeline (pipeline = {}). Take 1f1b.", row.pipeline);
  if (row.schedule != RowSchedule::interleaved && row.chunks > 1)
    line.refuse("{} has one chunk a stage (chunks = {}). Take interleaved-1f1b.",
                to_string(row.schedule), row.chunks);
  if (row.sharding == ShardingKind::zero3 && row.pipeline > 1)
    line.refuse("zero3 with a pipeline is not known here (pipeline = {}). Take zero1.",
                row.pipeline);
  check_batch(line, row);
  if (row.schedule == RowSchedule::interleaved && row.microbatches() % row.pipeline != 0)
    line.refuse("{} microbatches do not divide by {} stages (interleaved-1f1b). Change the batch.",
                row.microbatches(), row.pipeline);
}

std::string precision_of(const CsvLine& line, const Columns& columns) {
  const std::vector<std::string> known{"fp16", "bf16", "bf16-pure", "fp8"};
  const std::string word{columns.text(line, "precision")};
  if (std::ranges::find(known, word) == known.end())
    line.refuse("precision is \"{}\". {}", scenario::shown(word), suggestion(word, known));
  return word;
}

std::optional<Bytes> bucket_of(const CsvLine& line, const Columns& columns,
                               const TrainingRow& row) {
  if (!columns.has("bucket")) return std::nullopt;
  const std::string_view word = columns.text(line, "bucket");
  if (word.empty() || word == "none") return std::nullopt;
  Bytes bucket;
  try {
    bucket = parse_bytes(word);
  } catch (const Error& error) {
    line.refuse("bucket: {}", error.what());
  }
  if (bucket < Bytes{1}) line.refuse("bucket is {} (it holds nothing). Write none.", word);
  const bool in_layers = row.sharding == ShardingKind::zero3 ||
                         (row.sharding == ShardingKind::zero2 && row.pipeline == 1);
  if (in_layers)
    line.refuse("bucket does not go with {} here, which sums layer by layer. Leave it out.",
                to_string(row.sharding));
  return bucket;
}

TrainingRow read_row(const CsvLine& line, const Columns& columns) {
  TrainingRow row;
  row.row = columns.text(line, "row");
  row.machine = columns.text(line, "machine");
  row.model = columns.text(line, "model");
  const std::pair<const char*, int*> counts[] = {{"gpus", &row.gpus},
                                                 {"global_batch", &row.global_batch},
                                                 {"micro_batch", &row.micro_batch},
                                                 {"sequence", &row.sequence},
                                                 {"hidden", &row.hidden},
                                                 {"intermediate", &row.intermediate},
                                                 {"heads", &row.heads},
                                                 {"kv_heads", &row.kv_heads},
                                                 {"layers", &row.layers},
                                                 {"vocabulary", &row.vocabulary},
                                                 {"tensor", &row.tensor},
                                                 {"data", &row.data},
                                                 {"pipeline", &row.pipeline},
                                                 {"chunks", &row.chunks}};
  for (const auto& [name, into] : counts) *into = columns.count(line, name);
  row.mlp = columns.choice<MlpKind>(line, "mlp");
  row.positions = columns.choice<PositionKind>(line, "positions");
  row.schedule = columns.choice<RowSchedule>(line, "schedule");
  row.recompute = columns.choice<RecomputeKind>(line, "recompute");
  row.sharding = columns.choice<ShardingKind>(line, "sharding");
  row.attention = columns.choice<AttentionKind>(line, "attention");
  const std::string_view parallel = columns.text(line, "sequence_parallel");
  if (parallel != "yes" && parallel != "no")
    line.refuse("sequence_parallel is \"{}\". Write yes or no.", scenario::shown(parallel));
  row.sequence_parallel = parallel == "yes";
  row.precision = precision_of(line, columns);
  row.bucket = bucket_of(line, columns, row);
  row.measured = measured_of(line, columns);
  check_layout(line, row);
  return row;
}

}  // namespace

double TrainingRow::layer_weights() const {
  const double h = hidden;
  const double kv = h / heads * kv_heads;
  const double mlp_maps = mlp == MlpKind::swiglu ? 3 : 2;
  return 2 * h * h + 2 * h * kv + mlp_maps * h * intermediate + 9 * h + intermediate;
}

double TrainingRow::weights() const {
  const double table = positions == PositionKind::learned ? vocabulary + sequence : vocabulary;
  return layers * layer_weights() + table * hidden;
}

std::vector<TrainingRow> read_training_rows(std::string_view csv, const std::string& source) {
  std::vector<TrainingRow> rows;
  std::optional<Columns> columns;
  std::map<std::string, std::size_t, std::less<>> seen;
  scenario::each_csv_line(csv, source, [&](const CsvLine& line) {
    if (!columns) {
      columns.emplace(line);
      return;
    }
    rows.push_back(read_row(line, *columns));
    const auto [before, is_new] = seen.emplace(rows.back().row, line.number);
    if (!is_new)
      line.refuse("row {} stands in line {} already. Give it another name.", rows.back().row,
                  before->second);
  });
  if (!columns) fail("{}: the table is empty (it needs a header and rows). Name another.", source);
  return rows;
}

}  // namespace longhaul::profile
