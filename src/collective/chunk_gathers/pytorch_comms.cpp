#include "collective/chunk_gathers/pytorch_comms.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedule/csv/csv.hpp"

namespace longhaul::collective {
namespace {

/// A side of a message. Of two devices both have theirs in the order of (time, chunk, microbatch).
struct MessageSide {
  Duration time{};  ///< at which it leaves
  ChunkId from{};
  MicrobatchId microbatch{};
  std::string text;
  std::size_t after = 0;  ///< of a send: the blocks that come before it
  [[nodiscard]] auto place() const { return std::tuple{time, from, microbatch}; }
};

class PytorchRows {
public:
  PytorchRows(const Schedule& schedule, const ChunkGathers& gathers, const BlockSpans& spans)
      : schedule_{schedule}, gathers_{gathers}, spans_{spans}, sides_(schedule.devices) {
    for (const DeviceId device : schedule.device_ids()) add_messages(device);
    for (std::vector<MessageSide>& own : sides_)
      std::ranges::stable_sort(own, {}, &MessageSide::place);
  }

  [[nodiscard]] std::string row(DeviceId device) const {
    std::vector<std::string> cells;
    const std::span<const Block> blocks = schedule_.row(ReplicaId{0}, device);
    std::map<ChunkId, int> left;  // blocks that make gradients of weights
    for (const Block& block : blocks) left[block.chunk] += makes_gradients(block) ? 1 : 0;
    auto next = sides_[device].begin();
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (; next != sides_[device].end() && next->after <= b &&
             next->time <= spans_[device][b].start;
           ++next)
        cells.push_back(next->text);
      add_gathers(device, b, cells);
      cells.push_back(schedule::csv_cell(blocks[b]));
      const auto leaves = std::find_if(
          next, sides_[device].end(), [&](const MessageSide& each) { return each.after == b + 1; });
      if (leaves != sides_[device].end())
        for (const auto end = leaves + 1; next != end; ++next) cells.push_back(next->text);
      add_end(device, b, left, cells);
    }
    for (; next != sides_[device].end(); ++next) cells.push_back(next->text);
    return fmt::format("{}\n", fmt::join(cells, ","));
  }

private:
  static bool makes_gradients(const Block& block) {
    return block.kind == BlockKind::B || block.kind == BlockKind::W;
  }

  void add_messages(DeviceId device) {
    const std::span<const Block> blocks = schedule_.row(ReplicaId{0}, device);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const Block& block = blocks[b];
      const ChunkId to = taker_of(schedule_, block);
      if (to == kNone<ChunkId> || block.kind == BlockKind::W) continue;
      const DeviceId peer = schedule_.device_of_chunk[to];
      if (peer == device) continue;
      const char* const what = block.kind == BlockKind::F ? "F" : "B";
      const auto add = [&](DeviceId at, ChunkId chunk, const char* side, std::size_t after) {
        sides_[at].push_back({spans_[device][b].end, block.chunk, block.microbatch,
                              fmt::format("{}{}_{}{}", chunk, side, what, block.microbatch),
                              after});
      };
      add(device, block.chunk, "SEND", b + 1);
      add(peer, to, "RECV", 0);
    }
  }

  void add_gathers(DeviceId device, std::size_t b, std::vector<std::string>& cells) const {
    if (!gathers_.contains(device)) return;
    for (const ChunkGather& each : gathers_[device])
      if (each.issue == b) cells.push_back(fmt::format("{}UNSHARD", each.chunk));
  }

  void add_end(DeviceId device, std::size_t b, std::map<ChunkId, int>& left,
               std::vector<std::string>& cells) const {
    const Block& block = schedule_.row(ReplicaId{0}, device)[b];
    if (makes_gradients(block) && --left[block.chunk] == 0)
      cells.push_back(fmt::format("{}REDUCE_GRAD", block.chunk));
    if (!gathers_.contains(device)) return;
    for (const ChunkGather& each : gathers_[device])
      if (each.last == b) cells.push_back(fmt::format("{}RESHARD", each.chunk));
  }

  const Schedule& schedule_;
  const ChunkGathers& gathers_;
  const BlockSpans& spans_;
  IndexedVector<DeviceId, std::vector<MessageSide>> sides_;
};

}  // namespace

std::string pytorch_comms(const Schedule& schedule, const ChunkGathers& gathers,
                          const BlockSpans& spans) {
  (void)schedule::write_csv(schedule, schedule::CsvFormat::pytorch);  // refuses what it cannot say
  const PytorchRows rows{schedule, gathers, spans};
  std::string text;
  for (const DeviceId device : schedule.device_ids()) text += rows.row(device);
  return text;
}

}  // namespace longhaul::collective
