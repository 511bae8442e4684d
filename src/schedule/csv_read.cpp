#include <algorithm>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "schedule/checks.hpp"
#include "schedule/csv.hpp"
#include "schedule/csv_line.hpp"

namespace longhaul {
namespace {

using csv::Line;

/// What the comment lines of a longhaul file say; absent values are inferred from the rows.
struct Header {
  bool present = false;
  std::optional<std::string> name;
  std::optional<int> devices;
  std::optional<int> chunks;
  std::optional<int> microbatches;
  std::optional<int> replicas;
  std::optional<int> copies;
  std::optional<std::vector<int>> device_of_chunk;
  std::optional<RecomputeTiming> recompute;
  std::vector<LinkOrder> link_orders;
  std::set<std::string> ordered;  ///< resources of link_orders
};

class HeaderReader {
public:
  explicit HeaderReader(Header& header) : header_{header} {}

  /// `line` stands behind the '#'.
  void read(Line& line) {
    line.skip_blanks();
    if (line.take("longhaul schedule ")) return read_version(line);
    if (!header_.present) return;  // a comment of somebody else's file
    const std::size_t key_begin = line.position();
    const std::string_view key = line.take_word();
    line.skip_blanks();
    if (key == "link_order" && line.peek() == '"') return read_link_order(line);
    if (key.empty() || !line.take('=')) return;  // a comment in words
    line.skip_blanks();
    read_value(line, key, key_begin);
    expect_end(line);
  }

private:
  void read_version(Line& line) {
    const std::size_t begin = line.position();
    const int version = line.take_number(1'000'000, "The format's version");
    if (version != 1) {
      line.fail_at(begin,
                   fmt::format("The file has format version {} (this program reads 1).", version));
    }
    expect_end(line);
    header_.present = true;
  }

  void read_value(Line& line, std::string_view key, std::size_t key_begin) {
    if (key == "name") return set(header_.name, line.take_quoted(), line, key_begin);
    if (key == "device_of_chunk") {
      return set(header_.device_of_chunk, take_devices(line), line, key_begin);
    }
    if (key == "recompute") return set(header_.recompute, take_timing(line), line, key_begin);
    const auto count = [&](std::optional<int>& value, std::int64_t most) {
      set(value, line.take_number(most, "The count"), line, key_begin);
    };
    if (key == "devices") return count(header_.devices, csv::kMostRows);
    if (key == "chunks") return count(header_.chunks, csv::kMostChunks);
    if (key == "microbatches") return count(header_.microbatches, csv::kMostMicrobatches);
    if (key == "replicas") return count(header_.replicas, csv::kMostRows);
    if (key == "copies") return count(header_.copies, csv::kMostChunks);
    static const std::vector<std::string> kKeys{
        "name",   "devices",         "chunks",    "microbatches", "replicas",
        "copies", "device_of_chunk", "recompute", "link_order"};
    line.fail_at(key_begin,
                 fmt::format("Unknown key \"{}\". {}", key.substr(0, 32), suggestion(key, kKeys)));
  }

  template <typename Value>
  void set(std::optional<Value>& slot, Value value, const Line& line, std::size_t key_begin) {
    if (slot) line.fail_at(key_begin, "The key is there twice. Leave one out.");
    slot = std::move(value);
  }

  static RecomputeTiming take_timing(Line& line) {
    const std::size_t begin = line.position();
    const std::string_view word = line.take_word();
    if (word == "ahead") return RecomputeTiming::ahead;
    if (word != "on_arrival") line.fail_at(begin, "Known: on_arrival, ahead.");
    return RecomputeTiming::on_arrival;
  }

  static std::vector<int> take_devices(Line& line) {
    std::vector<int> devices;
    do {
      line.skip_blanks();
      devices.push_back(line.take_number(csv::kMostRows - 1, "The device"));
      line.skip_blanks();
    } while (line.take(','));
    return devices;
  }

  void read_link_order(Line& line) {
    const std::size_t begin = line.position();
    LinkOrder order{line.take_quoted(), {}};
    if (!header_.ordered.insert(order.resource).second)
      line.fail_at(begin, "The messages of this resource are ordered twice. Leave one line out.");
    line.skip_blanks();
    if (!line.take('=')) line.fail_at(line.position(), "\"=\" and the messages are expected.");
    for (line.skip_blanks(); !line.at_end(); line.skip_blanks()) {
      OrderedMessage message;
      message.replica = line.take_number(csv::kMostRows - 1, "The replica");
      if (!line.take(':')) {
        line.fail_at(line.position(), "A message is written replica:cell, as in 0:2F5.");
      }
      message.producer = line.take_cell();
      order.messages.push_back(message);
      if (!line.take(',')) break;
    }
    header_.link_orders.push_back(std::move(order));
  }

  static void expect_end(Line& line) {
    line.skip_blanks();
    if (!line.at_end()) line.fail_at(line.position(), "Nothing more is expected on this line.");
  }

  Header& header_;
};

/// Which row holds a chunk: the one with the most of its blocks, so that one block on the wrong
/// row is reported as such, not all the others.
class Holders {
public:
  void add(int row, int chunk) {
    if (static_cast<std::size_t>(chunk) >= holders_.size()) {
      holders_.resize(static_cast<std::size_t>(chunk) + 1);
    }
    Holder& holder = holders_[static_cast<std::size_t>(chunk)];
    if (holder.current_row != row) holder.current_row = row, holder.current = 0;
    if (++holder.current > holder.best) holder.best = holder.current, holder.best_row = row;
  }
  [[nodiscard]] int chunks() const { return static_cast<int>(holders_.size()); }
  /// -1 where no row holds the chunk.
  [[nodiscard]] int row_of(int chunk) const {
    return chunk < chunks() ? holders_[static_cast<std::size_t>(chunk)].best_row : -1;
  }

private:
  struct Holder {
    int best_row = -1;
    int current_row = -1;
    std::int64_t best = 0;
    std::int64_t current = 0;
  };
  std::vector<Holder> holders_;
};

class Reader {
public:
  Reader(std::string_view text, const std::string& source) : text_{text}, source_{source} {}

  Schedule read(const std::string& name) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    while (!text_.empty()) read_line();
    return finish(name);
  }

private:
  void read_line() {
    const std::size_t end = text_.find('\n');
    std::string_view content = text_.substr(0, end);
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    if (content.ends_with('\r')) content.remove_suffix(1);
    Line line{content, ++lines_, source_};
    line.skip_blanks();
    if (line.at_end()) return;
    if (line.take('#')) return HeaderReader{header_}.read(line);
    read_row(line);
  }

  void read_row(Line& line) {
    const int row = static_cast<int>(schedule_.rows.size());
    if (row == csv::kMostRows) {
      line.fail_at(0, fmt::format("There are more than {} rows.", csv::kMostRows));
    }
    std::vector<Block>& blocks = schedule_.rows.emplace_back();
    do {
      line.skip_blanks();
      if (line.at_end() || line.peek() == ',') continue;  // an idle slot of PyTorch's
      blocks.push_back(line.take_cell());
      holders_.add(row, blocks.back().chunk);
      microbatches_ = std::max(microbatches_, blocks.back().microbatch + 1);
    } while (line.take(','));
    blocks.shrink_to_fit();
  }

  [[noreturn]] void fail_file(const std::string& message) const {
    fail("{}:{}:1: {}", source_, std::max<std::size_t>(lines_, 1), message);
  }

  Schedule finish(const std::string& name) {
    const int rows = static_cast<int>(schedule_.rows.size());
    if (rows == 0) fail_file("The file holds no rows (one for each device is expected).");
    schedule_.name = header_.name.value_or(name);
    schedule_.devices = header_.devices.value_or(rows);
    schedule_.replicas = header_.replicas.value_or(1);
    schedule_.copies = header_.copies.value_or(1);
    schedule_.chunks = header_.chunks.value_or(holders_.chunks());
    schedule_.microbatches = header_.microbatches.value_or(microbatches_);
    schedule_.recompute_timing = header_.recompute.value_or(RecomputeTiming::on_arrival);
    schedule_.link_orders = std::move(header_.link_orders);
    schedule_.device_of_chunk =
        header_.device_of_chunk ? *header_.device_of_chunk : infer_devices();
    if (const auto wrong = checks::counts_violation(schedule_)) fail_file(wrong->text);
    return std::move(schedule_);
  }

  std::vector<int> infer_devices() const {
    std::vector<int> devices;
    for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
      const int row = holders_.row_of(chunk);
      if (row < 0) {
        fail_file(fmt::format("No row holds chunk {} (chunks 0 to {} are needed). Add its blocks.",
                              chunk, schedule_.chunks - 1));
      }
      devices.push_back(row % std::max(schedule_.devices, 1));
    }
    return devices;
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t lines_ = 0;
  Header header_;
  Holders holders_;
  int microbatches_ = 0;
  Schedule schedule_;
};

}  // namespace

Schedule read_csv(std::string_view text, const std::string& source, const std::string& name) {
  return Reader{text, source}.read(name);
}

}  // namespace longhaul
