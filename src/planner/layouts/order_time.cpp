#include "planner/layouts/order_time.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::planner {
namespace {

constexpr std::int64_t kNotYet = -1;

std::int64_t ns(Duration time) { return time.count(); }

/// Plays the rows of one replica.
class OrderRun {
public:
  OrderRun(const Schedule& schedule, const LayoutTimes& times, std::vector<std::int64_t>& forward,
           std::vector<std::int64_t>& gradient)
      : schedule_{schedule},
        times_{times},
        microbatches_{to_size(schedule.microbatches)},
        last_{schedule.chunks - 1},
        ahead_{schedule.recompute_timing == RecomputeTiming::ahead},
        forward_{forward},
        gradient_{gradient},
        devices_(to_size(schedule.devices)),
        links_(3 * to_size(schedule.devices)) {
    forward_.assign(to_size(schedule.chunks) * microbatches_, kNotYet);
    gradient_.assign(to_size(schedule.chunks) * microbatches_, kNotYet);
    std::fill_n(forward_.begin(), microbatches_, 0);
  }

  /// Sweeps up and down the pipeline until every row has ended.
  std::int64_t play() {
    const int count = schedule_.devices;
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (int device = 0; device < count; ++device) is_moving |= advance(device);
      for (int device = count; device-- > 0;) is_moving |= advance(device);
    }
    std::int64_t end = 0;
    for (int device = 0; device < count; ++device) {
      LONGHAUL_ASSERT(devices_[at(device)].next == schedule_.rows[at(device)].size(),
                      "device {} waits for ever", device);
      end = std::max(end, devices_[at(device)].free + ns(times_.tail(device)));
    }
    return end;
  }

private:
  struct Device {
    std::size_t next = 0;
    std::int64_t free = 0;
  };

  bool advance(int number) {
    Device& device = devices_[at(number)];
    const std::vector<Block>& row = schedule_.rows[at(number)];
    const std::size_t before = device.next;
    for (; device.next < row.size(); ++device.next) {
      const Block& block = row[device.next];
      const auto chunk = at(block.chunk);
      const std::size_t slot = chunk * microbatches_ + at(block.microbatch);
      std::int64_t ready = 0;
      if (block.kind == BlockKind::F)
        ready = forward_[slot];
      else if (block.kind != BlockKind::W && !(block.kind == BlockKind::R && ahead_))
        ready = gradient_[slot];
      if (ready == kNotYet) break;
      device.free = std::max(device.free, ready) + ns(times_.chunks[chunk][index(block.kind)]);
      if (block.kind == BlockKind::F)
        hand_forward(number, block.chunk, slot, device.free);
      else if (is_backward(block.kind) && block.chunk > 0)
        gradient_[slot - microbatches_] =
            arrival(number, times_.device_of_chunk[chunk - 1], device.free);
    }
    return device.next != before;
  }

  void hand_forward(int device, int chunk, std::size_t slot, std::int64_t end) {
    if (chunk == last_)
      gradient_[slot] = end;
    else
      forward_[slot + microbatches_] = arrival(device, times_.device_of_chunk[at(chunk + 1)], end);
  }

  std::int64_t arrival(int from, int to, std::int64_t ready) {
    if (from == to) return ready;
    const LayoutTimes::Border& border = times_.border(from, to);
    const int way = to == from + 1 ? 0 : to == from - 1 ? 1 : 2;
    std::int64_t& free = links_[at(3 * from + way)];
    free = std::max(free, ready) + ns(border.transfer);
    return free + ns(border.latency);
  }

  const Schedule& schedule_;
  const LayoutTimes& times_;
  std::size_t microbatches_;
  int last_;
  bool ahead_;  ///< an R waits for nothing
  std::vector<std::int64_t>& forward_;
  std::vector<std::int64_t>& gradient_;
  std::vector<Device> devices_;
  std::vector<std::int64_t> links_;  ///< when each ordered pair's link is free
};

}  // namespace

const Schedule& OrderTimer::schedule_for(const Layout& layout, const LayoutTimes& times) {
  const int chunks = layout.pipeline * layout.chunks;
  if (!schedule_.rows.empty() && schedule_.devices == layout.pipeline &&
      schedule_.chunks == chunks && schedule_.microbatches == times.microbatches &&
      order_ == layout.order && has_recompute_ == times.has_recompute)
    return schedule_;
  Scenario scenario = uniform_scenario(layout.pipeline, times.microbatches);
  scenario.parallel.chunks = layout.chunks;
  scenario.memory.recompute = times.has_recompute;
  schedule_ = schedule::generate(to_string(layout.order), scenario);
  order_ = layout.order;
  has_recompute_ = times.has_recompute;
  return schedule_;
}

Duration OrderTimer::makespan(const Layout& layout, const LayoutTimes& times) {
  const Schedule& schedule = schedule_for(layout, times);
  for (const std::vector<Block>& row : schedule.rows) blocks_ += std::ssize(row);
  return Duration{OrderRun{schedule, times, forward_, gradient_}.play()};
}

bool is_plain_order(const Schedule& schedule) {
  const auto has_parts = [](const std::vector<Block>& row) {
    return std::ranges::any_of(row, [](const Block& block) { return block.parts > 1; });
  };
  return schedule.copies == 1 && schedule.cell == 1 && schedule.link_orders.empty() &&
         schedule.replicas_share_rows() && std::ranges::none_of(schedule.rows, has_parts);
}

Duration play_order(const Schedule& schedule, const LayoutTimes& times) {
  LONGHAUL_ASSERT(is_plain_order(schedule), "{} has more than an order", schedule.name);
  std::vector<std::int64_t> forward, gradient;
  return Duration{OrderRun{schedule, times, forward, gradient}.play()};
}

Duration least_makespan(const Layout& layout, const LayoutTimes& times) {
  const bool splits = splits_backward(layout.order), ahead = recomputes_ahead(layout.order);
  const BlockKind back = splits ? BlockKind::D : BlockKind::B;
  const auto time_of = [&](const LayoutTimes::Border& border) {
    return border.latency + (layout.order == LayoutOrder::atlas ? Duration{} : border.transfer);
  };
  struct OfDevice {
    Duration head = Duration::max(), way_back = Duration::max();
    Duration work{}, without_weights{};
  };
  std::vector<OfDevice> devices(to_size(times.devices));
  Duration there{}, home{};  // the way of a microbatch to a chunk, and from it to the first
  for (std::size_t chunk = 0; chunk < times.chunks.size(); ++chunk) {
    const LayoutTimes::OfChunk& of = times.chunks[chunk];
    const int number = times.device_of_chunk[chunk];
    if (chunk > 0 && times.device_of_chunk[chunk - 1] != number) {
      const int before = times.device_of_chunk[chunk - 1];
      there += time_of(times.border(before, number));
      home += time_of(times.border(number, before));
    }
    OfDevice& device = devices[at(number)];
    device.head = std::min(device.head, there);
    device.way_back = std::min(device.way_back, home);
    // An order that computes again while it waits does not where a B follows its own F.
    const bool never_again = ahead && chunk + 1 == times.chunks.size();
    const Duration again = never_again ? Duration{} : of[index(BlockKind::R)];
    const Duration whole = of[index(BlockKind::F)] + of[index(back)] + again;  // but for W
    device.without_weights += whole;
    device.work += whole + (splits ? of[index(BlockKind::W)] : Duration{});
    there += of[index(BlockKind::F)];
    home += of[index(back)] + (ahead ? Duration{} : again);
  }
  Duration least = there + home + times.tail(0);  // one microbatch all the way
  for (int number = 0; number < times.devices; ++number) {
    const OfDevice& device = devices[at(number)];
    const std::int64_t count = times.microbatches;
    least =
        std::max({least, device.head + count * device.work + times.tail(number),
                  device.head + count * device.without_weights + device.way_back + times.tail(0)});
  }
  return least;
}

Duration least_of_any_order(const Layout& layout, const LayoutTimes& times) {
  Duration way{}, work{};
  for (std::size_t chunk = 0; chunk < times.chunks.size(); ++chunk) {
    const LayoutTimes::OfChunk& of = times.chunks[chunk];
    const Duration gradient = std::min(of[index(BlockKind::B)], of[index(BlockKind::D)]);
    way += of[index(BlockKind::F)] + gradient;
    work += of[index(BlockKind::F)] +
            std::min(of[index(BlockKind::B)], of[index(BlockKind::D)] + of[index(BlockKind::W)]);
    // The last stage need not compute again where its B follows its F.
    if (chunk + to_size(layout.chunks) < times.chunks.size()) work += of[index(BlockKind::R)];
  }
  for (int number = 0; number + 1 < times.devices; ++number)
    for (const auto& [from, to] : {std::pair{number, number + 1}, std::pair{number + 1, number}})
      way += times.border(from, to).latency + times.border(from, to).transfer;
  Duration tail = Duration::max();
  for (int number = 0; number < times.devices; ++number) tail = std::min(tail, times.tail(number));
  return std::max(way, times.microbatches * work / times.devices) + tail;
}

}  // namespace longhaul::planner
