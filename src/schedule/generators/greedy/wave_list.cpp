#include "schedule/generators/greedy/wave_list.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "schedule/generators/greedy/greedy_clock.hpp"
#include "schedule/generators/greedy/row_times.hpp"

namespace longhaul::schedule::families {
namespace {

using enum BlockKind;
constexpr Duration kNever = GreedyClock::kNever;

/// A device's two chunks: the way down the V, and the way up.
enum Side { kDown, kUp };

class WaveList {
public:
  WaveList(const GreedyProblem& problem, const WaveFill& fill, std::span<const Duration> lag)
      : problem_{problem},
        fill_{fill},
        lag_{lag},
        count_{problem.chunks.front().count},
        forward_inputs_(problem.chunks.size() * at(count_), kNever),
        dgrad_inputs_(forward_inputs_.size(), kNever),
        devices_(problem.chunks_on.size()),
        rows_(devices_.size()) {
    for (std::vector<Block>& row : rows_) row.reserve(at(count_) * (problem.recompute ? 8 : 6));
  }

  std::optional<WaveOrder> run() {
    warm_up();
    even_out();
    for (bool progress = true; progress;) {
      progress = place_dgrads();
      progress |= place_forwards();
    }
    WaveOrder order;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      Device& device = devices_[d];
      if (device.dgrads[kDown] < count_ || device.dgrads[kUp] < count_) return std::nullopt;
      while (!device.pending.empty()) put_wgrad(d);
      order.bubbles.push_back(device.bubble);
    }
    order.rows = std::move(rows_);
    return order;
  }

private:
  /// W whose D is done, first in, first out.
  struct Pending {
    std::vector<Side> sides;
    std::size_t first = 0;
    [[nodiscard]] bool empty() const { return first == sides.size(); }
  };
  struct Device {
    std::array<int, 2> forwards{};  ///< done; index: side; so for the others
    std::array<int, 2> dgrads{};
    std::array<int, 2> wgrads{};
    Pending pending;
    Duration free_at{};
    Duration bubble{};
    Bytes held;
    Bytes by_wgrad;  ///< of `held`, what pending W free
  };

  [[nodiscard]] ChunkId id(std::size_t d, Side side) const {
    return problem_.chunks_on.items()[d][side];
  }
  [[nodiscard]] const GreedyChunk& chunk(std::size_t d, Side side) const {
    return problem_.chunks[id(d, side)];
  }
  [[nodiscard]] std::size_t place_of(ChunkId chunk, int nth) const {
    return at(chunk) * at(count_) + at(nth);
  }
  /// When the input of the next F of a chunk is there. kNever: not yet known, or none is left.
  [[nodiscard]] Duration forward_input(std::size_t d, Side side) const {
    const ChunkId mine = id(d, side);
    const int nth = devices_[d].forwards[side];
    if (nth == count_) return kNever;
    return mine == 0 ? Duration::zero() : forward_inputs_[place_of(previous(mine), nth)];
  }
  [[nodiscard]] Duration dgrad_input(std::size_t d, Side side) const {
    const ChunkId mine = id(d, side);
    const int nth = devices_[d].dgrads[side];
    if (nth == count_) return kNever;
    const bool is_last = !problem_.chunks[mine].activation.is_taken();
    return is_last ? forward_inputs_[place_of(mine, nth)]
                   : dgrad_inputs_[place_of(next(mine), nth)];
  }

  /// On a link that serves no one else.
  [[nodiscard]] static Duration arrival(const GreedyHop& hop, Duration ready) {
    return hop.local ? ready : ready + hop.transfer + hop.latency;
  }

  void warm_up();
  void even_out();
  bool place_dgrads();
  bool place_forwards();
  [[nodiscard]] bool may_run_ahead(std::size_t d) const;
  [[nodiscard]] bool prefers_down(std::size_t d) const;
  [[nodiscard]] std::optional<Side> next_forward(std::size_t d) const;
  [[nodiscard]] bool fits_forward(std::size_t d, Side side) const;
  void fill_gap(std::size_t d, Duration input, bool short_gaps);
  bool try_forward(std::size_t d, Side side);
  bool try_dgrad(std::size_t d, Side side);
  void put_wgrad(std::size_t d);
  void run_block(std::size_t d, Duration input, Duration length);
  void write(std::size_t d, BlockKind kind, Side side, int nth) {
    rows_[d].push_back({.kind = kind, .chunk = id(d, side), .microbatch = MicrobatchId{nth}});
  }

  const GreedyProblem& problem_;
  WaveFill fill_;
  std::span<const Duration> lag_;
  int count_;
  /// Index: place_of(); when the output of a block is where it is taken, kNever: not placed yet.
  std::vector<Duration> forward_inputs_;
  std::vector<Duration> dgrad_inputs_;
  std::vector<Device> devices_;
  std::vector<std::vector<Block>> rows_;
  Duration most_bubble_{};
};

void WaveList::warm_up() {
  const std::size_t devices = devices_.size();
  for (std::size_t d = 0; d < devices; ++d) try_forward(d, kDown);
  for (std::size_t d = devices; d-- > 0;) {
    while (may_run_ahead(d)) {
      for (std::size_t before = 0; before <= d; ++before) try_forward(before, kDown);
    }
    try_forward(d, kUp);
  }
}

/// May devices up to `d` run another F of the way down while `d` waits for the first microbatch on
/// its way up? Memory for that one, and for the F of both chunks that follow in even_out(), stays.
bool WaveList::may_run_ahead(std::size_t d) const {
  const Duration input = forward_input(d, kUp);
  if (input == kNever || devices_[d].free_at + chunk(d, kDown).forward > input) return false;
  for (std::size_t before = 0; before <= d; ++before) {
    const Bytes each = chunk(before, kDown).kept + chunk(before, kUp).kept;
    const bool fits = devices_[before].held + each * static_cast<std::int64_t>(before + 1) +
                          std::max(chunk(before, kDown).rest, chunk(before, kUp).rest) <=
                      problem_.limit;
    const bool same = devices_[before].forwards[kDown] == devices_[d].forwards[kDown];
    if (!fits || !same || devices_[before].forwards[kDown] == count_) return false;
  }
  return true;
}

void WaveList::even_out() {
  Side side = kDown;
  for (std::size_t d = 1; d < devices_.size(); ++d) {
    const std::array<int, 2>& mine = devices_[d].forwards;
    const std::array<int, 2>& before = devices_[d - 1].forwards;
    const auto has_fewer = [&] {
      if (mine[kDown] + mine[kUp] < before[kDown] + before[kUp]) return true;
      return mine[kUp] <= before[kUp] && before[kUp] < count_;
    };
    for (int idle = 0; idle < 2 && has_fewer();) {
      bool placed = false;
      for (std::size_t later = devices_.size(); later-- > d;) placed |= try_forward(later, side);
      idle = placed ? 0 : idle + 1;
      side = side == kDown ? kUp : kDown;
    }
  }
}

/// Should the next D be one of the device's first chunk?
bool WaveList::prefers_down(std::size_t d) const {
  const Device& device = devices_[d];
  if (device.dgrads[kDown] >= device.dgrads[kUp]) return false;
  if (d + 1 == devices_.size() || device.dgrads[kUp] == count_) return true;
  return dgrad_input(d, kDown) != kNever;
}

/// One D a device: those that go down the devices first, from the last device on, then the others
/// from the first device on, so that each finds its input placed.
bool WaveList::place_dgrads() {
  std::vector<Side> sides;
  for (std::size_t d = 0; d < devices_.size(); ++d) sides.push_back(prefers_down(d) ? kDown : kUp);
  bool progress = false;
  for (std::size_t d = devices_.size(); d-- > 0;) {
    if (sides[d] == kDown) progress |= try_dgrad(d, kDown) || try_dgrad(d, kUp);
  }
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (sides[d] == kUp) progress |= try_dgrad(d, kUp) || try_dgrad(d, kDown);
  }
  return progress;
}

std::optional<Side> WaveList::next_forward(std::size_t d) const {
  if (forward_input(d, kUp) != kNever) return kUp;
  if (forward_input(d, kDown) != kNever) return kDown;
  return std::nullopt;
}

bool WaveList::place_forwards() {
  bool progress = false;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const auto side = next_forward(d);
    if (!side) continue;
    progress |= try_forward(d, *side);
  }
  return progress;
}

/// A chunk on the way up that holds nothing keeps the place of one activation, unless a D of the
/// way down could make it at once, and every F leaves room for an R: so the order ends
/// in any memory for one microbatch.
bool WaveList::fits_forward(std::size_t d, Side side) const {
  const Device& device = devices_[d];
  const Bytes kept = chunk(d, kUp).kept;
  const Bytes held = device.held - device.by_wgrad + chunk(d, side).kept;
  const int going_up = device.forwards[kUp] - device.dgrads[kUp];
  const bool keeps_place = side == kDown && going_up == 0 && dgrad_input(d, kDown) == kNever;
  if (held + (keeps_place ? kept : Bytes{}) + chunk(d, kUp).rest > problem_.limit) return false;
  // By the time that its D comes, those on the way up may all have ended.
  return side == kUp || held - kept * going_up + chunk(d, kDown).rest <= problem_.limit;
}

/// W into the gap before a block whose input comes at `input`.
void WaveList::fill_gap(std::size_t d, Duration input, bool short_gaps) {
  Device& device = devices_[d];
  while (!device.pending.empty()) {
    const Side side = device.pending.sides[device.pending.first];
    if (input < device.free_at + chunk(d, side).wgrad.front()) break;
    put_wgrad(d);
  }
  if (!short_gaps || device.pending.empty()) return;
  const Duration idle = device.bubble + input - device.free_at;
  if (idle > std::max(most_bubble_, lag_[d])) put_wgrad(d);
}

bool WaveList::try_forward(std::size_t d, Side side) {
  const Duration input = forward_input(d, side);
  if (input == kNever || !fits_forward(d, side)) return false;
  Device& device = devices_[d];
  const GreedyChunk& given = chunk(d, side);
  while (device.held + given.kept > problem_.limit) put_wgrad(d);
  fill_gap(d, input, fill_.before_forward);
  const int nth = device.forwards[side]++;
  device.held += given.kept;
  write(d, F, side, nth);
  run_block(d, input, given.forward);
  forward_inputs_[place_of(id(d, side), nth)] = arrival(given.activation, device.free_at);
  return true;
}

bool WaveList::try_dgrad(std::size_t d, Side side) {
  const Duration input = dgrad_input(d, side);
  Device& device = devices_[d];
  const GreedyChunk& given = chunk(d, side);
  if (input == kNever || device.held - device.by_wgrad + given.rest > problem_.limit) return false;
  while (device.held + given.rest > problem_.limit) put_wgrad(d);
  fill_gap(d, input, side == kDown || fill_.before_dgrad);
  while (device.held + given.rest > problem_.limit) put_wgrad(d);
  const int nth = device.dgrads[side]++;
  if (problem_.recompute) write(d, R, side, nth);
  write(d, D, side, nth);
  run_block(d, input, given.recompute + given.dgrad);
  device.held += given.rest - given.after_dgrad;
  device.by_wgrad += given.after_wgrad;
  device.pending.sides.push_back(side);
  dgrad_inputs_[place_of(id(d, side), nth)] = arrival(given.gradient, device.free_at);
  return true;
}

void WaveList::put_wgrad(std::size_t d) {
  Device& device = devices_[d];
  const Side side = device.pending.sides[device.pending.first++];
  const GreedyChunk& given = chunk(d, side);
  write(d, W, side, device.wgrads[side]++);
  device.free_at += given.wgrad.front();
  device.held -= given.after_wgrad;
  device.by_wgrad -= given.after_wgrad;
}

void WaveList::run_block(std::size_t d, Duration input, Duration length) {
  Device& device = devices_[d];
  const Duration start = std::max(device.free_at, input);
  const bool is_first = device.forwards[kDown] + device.forwards[kUp] == 1;
  if (!is_first) device.bubble += start - device.free_at;
  most_bubble_ = std::max(most_bubble_, device.bubble);
  device.free_at = start + length;
}

}  // namespace

std::optional<WaveOrder> wave_list(const GreedyProblem& problem, const WaveFill& fill,
                                   std::span<const Duration> lag) {
  return WaveList{problem, fill, lag}.run();
}

}  // namespace longhaul::schedule::families
