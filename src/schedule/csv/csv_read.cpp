#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text_file.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/csv/csv_header.hpp"
#include "schedule/csv/csv_line.hpp"
#include "schedule/validity/checks.hpp"

namespace longhaul::schedule {
namespace {

using csv::Line;

/// Which row holds a chunk: the one with the most of its blocks, so that one block on the wrong
/// row is reported as such, not all the others.
class Holders {
public:
  void add(int row, ChunkId chunk) {
    if (!holders_.contains(chunk)) holders_.resize(chunk + 1);
    Holder& holder = holders_[chunk];
    if (holder.current_row != row) holder.current_row = row, holder.current = 0;
    if (++holder.current > holder.best) holder.best = holder.current, holder.best_row = row;
  }
  [[nodiscard]] int chunks() const { return holders_.count(); }
  /// -1 where no row holds the chunk.
  [[nodiscard]] int row_of(ChunkId chunk) const {
    return chunk < chunks() ? holders_[chunk].best_row : -1;
  }

private:
  struct Holder {
    int best_row = -1;
    int current_row = -1;
    std::int64_t best = 0;
    std::int64_t current = 0;
  };
  IndexedVector<ChunkId, Holder> holders_;
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
    csv::Line line{content, ++lines_, source_};
    line.skip_blanks();
    if (line.at_end()) return;
    if (line.take('#')) return header_.read(line);
    read_row(line);
  }

  void read_row(csv::Line& line) {
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
    schedule_.cell = header_.cell.value_or(1);
    schedule_.chunks = header_.chunks.value_or(holders_.chunks());
    schedule_.microbatches = header_.microbatches.value_or(microbatches_);
    schedule_.replica_microbatches = header_.replica_microbatches.value_or(std::vector<int>{});
    schedule_.recompute_timing = header_.recompute.value_or(RecomputeTiming::on_arrival);
    schedule_.link_orders = std::move(header_.link_orders);
    schedule_.device_of_chunk =
        header_.device_of_chunk ? *header_.device_of_chunk : infer_devices();
    if (const auto wrong = checks::counts_violation(schedule_)) fail_file(wrong->text);
    return std::move(schedule_);
  }

  IndexedVector<ChunkId, DeviceId> infer_devices() const {
    IndexedVector<ChunkId, DeviceId> devices;
    for (const ChunkId chunk : schedule_.chunk_ids()) {
      const int row = holders_.row_of(chunk);
      if (row < 0) {
        fail_file(fmt::format("No row holds chunk {} (chunks 0 to {} are needed). Add its blocks.",
                              chunk, schedule_.chunks - 1));
      }
      devices.push_back(DeviceId{row % std::max(schedule_.devices, 1)});
    }
    return devices;
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t lines_ = 0;
  csv::Header header_;
  Holders holders_;
  int microbatches_ = 0;
  Schedule schedule_;
};

}  // namespace

Schedule read_csv(std::string_view text, const std::string& source, const std::string& name) {
  return Reader{text, source}.read(name);
}

Schedule read_schedule_file(const std::filesystem::path& file) {
  return read_csv(read_text_file(file), file.string(), file.stem().string());
}

}  // namespace longhaul::schedule
