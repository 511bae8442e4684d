#include <algorithm>
#include <limits>

#include "base/index.hpp"
#include "base/random.hpp"
#include "planner/orders/starts.hpp"

namespace longhaul::planner {
namespace {

using Kind = OrderProblem::Kind;

constexpr std::int64_t kNeverReady = std::numeric_limits<std::int64_t>::max() / 4;

/// Weights that the seed decides.
struct Taste {
  double of_kind[3];      ///< F, G, W
  double of_depth[2];     ///< F, G: for each chunk that comes later on the same device
  double noise;           ///< how much each choice varies
  std::int64_t patience;  ///< how long something better may be waited for
  double fused;           ///< share of B in steady state
  double fused_at_end;    ///< once the device has no F left

  Taste(Random& random, std::int64_t longest) {
    of_kind[0] = random.uniform();
    of_kind[1] = random.uniform() + 0.5;
    of_kind[2] = random.uniform() * 0.6 - 0.3;
    for (double& depth : of_depth) depth = random.uniform() * 2 - 0.7;
    noise = random.uniform() < 0.5 ? 0 : 0.4 * random.uniform();
    patience = static_cast<std::int64_t>(random.uniform() * static_cast<double>(longest));
    const double mixes[] = {0, 1, random.uniform()};
    fused = mixes[random.between(0, 2)];
    fused_at_end = random.uniform() < 0.5 ? fused : mixes[random.between(0, 2)];
  }
};

class ListScheduling {
public:
  ListScheduling(const OrderProblem& problem, const Schedule& like, std::uint64_t seed)
      : problem_{problem},
        links_{problem.links().front()},
        random_{seed},
        taste_{random_, problem.chunk(ChunkId{}).time[0]},
        made_{like},
        devices_(problem.devices()),
        chunks_(problem.chunks()),
        arrival_(at(problem.blocks()), kNeverReady),
        link_free_(at(problem.devices() * problem.devices())) {
    for (auto& row : made_.rows) row.clear();
    for (ChunkId c{}; c < problem.chunks(); ++c) {
      chunks_[c].next[0] = chunks_[c].next[1] = MicrobatchId{like.copy_of(c)};
      left_ += 2 * like.microbatches_of(c);
      devices_[problem.chunk(c).device].forwards += like.microbatches_of(c);
      for (MicrobatchId m{}; m < problem.microbatches() && problem.chunk(c).is_first; ++m)
        arrival_[at(problem.id(Kind::F, c, m))] = problem.chunk(c).gathered;
    }
    for (const DeviceId device : problem.device_ids()) find_room(device);
  }

  std::optional<Schedule> run() {
    while (left_ > 0) {
      const DeviceId device = earliest_device();
      if (device == kNone<DeviceId>) return std::nullopt;
      place(device, choose(device));
    }
    return std::move(made_);
  }

private:
  struct Device {
    std::int64_t free = 0;
    std::int64_t held = 0;
    int forwards = 0;  ///< still to come
    /// When the next block could start; known until something changes.
    std::int64_t next = -1;
  };
  struct Chunk {
    MicrobatchId next[2] = {};        ///< microbatch of F, of G
    std::vector<MicrobatchId> split;  ///< microbatches whose W waits
    std::size_t weights = 0;          ///< of them done
    std::int64_t room = 0;            ///< that F must leave for what follows on its device
  };
  struct Option {
    Kind kind = Kind::F;
    ChunkId chunk{-1};
    std::int64_t start = kNeverReady;
  };

  /// After an F there must be room for the same microbatch's F in the device's later chunks, and
  /// for what R takes.
  void find_room(DeviceId device) {
    std::int64_t later = 0;
    for (const ChunkId c : problem_.chunks_on(device))
      later = std::max(later, problem_.chunk(c).again);
    const auto& mine = problem_.chunks_on(device);
    for (std::size_t i = mine.size(); i-- > 0;) {
      chunks_[mine[i]].room = later;
      later += problem_.chunk(mine[i]).taken;
    }
  }

  template <typename Visit>
  void each_option(DeviceId device, const Visit& visit) const {
    const Device& d = devices_[device];
    for (const ChunkId c : problem_.chunks_on(device)) {
      const Chunk& chunk = chunks_[c];
      const auto start = [&](Kind kind) {
        const MicrobatchId m = chunk.next[index(kind)];
        if (m >= problem_.microbatches()) return kNeverReady;
        return std::max(d.free, arrival_[at(problem_.id(kind, c, m))]);
      };
      const auto& costs = problem_.chunk(c);
      const std::int64_t limit = problem_.memory_limit(device);
      if (d.held + costs.taken + chunk.room <= limit) visit(Option{Kind::F, c, start(Kind::F)});
      if (d.held + costs.again <= limit) visit(Option{Kind::G, c, start(Kind::G)});
      if (chunk.weights < chunk.split.size()) visit(Option{Kind::W, c, d.free});
    }
  }

  /// kNone: no device has a block that could start.
  DeviceId earliest_device() {
    auto earliest = kNone<DeviceId>;
    std::int64_t at_time = kNeverReady;
    for (const DeviceId device : devices_.ids()) {
      Device& d = devices_[device];
      if (d.next < 0) {
        d.next = kNeverReady;
        each_option(device, [&](const Option& o) { d.next = std::min(d.next, o.start); });
      }
      if (d.next < at_time) {
        at_time = d.next;
        earliest = device;
      }
    }
    return earliest;
  }

  Option choose(DeviceId device) {
    const Device& d = devices_[device];
    Option best;
    double best_score = 0;
    each_option(device, [&](const Option& option) {
      if (option.start > d.next + (option.kind == Kind::W ? 0 : taste_.patience)) return;
      double score = taste_.of_kind[index(option.kind)];
      if (option.kind == Kind::F) score += taste_.of_depth[0] * depth(device, option.chunk);
      if (option.kind == Kind::G) score -= taste_.of_depth[1] * depth(device, option.chunk);
      if (taste_.noise > 0) score += taste_.noise * random_.uniform();
      if (best.chunk >= 0 && score <= best_score) return;
      best = option;
      best_score = score;
    });
    return best;
  }

  [[nodiscard]] double depth(DeviceId device, ChunkId chunk) const {
    const auto& mine = problem_.chunks_on(device);
    return static_cast<double>(std::ranges::find(mine, chunk) - mine.begin());
  }

  void place(DeviceId device, const Option& option) {
    Device& d = devices_[device];
    Chunk& chunk = chunks_[option.chunk];
    const auto& costs = problem_.chunk(option.chunk);
    auto& row = made_.rows[index(device)];
    const auto add = [&](BlockKind kind, MicrobatchId m) {
      row.push_back({kind, 0, 1, option.chunk, m});
    };
    d.next = -1;
    --left_;
    if (option.kind == Kind::W) {
      add(BlockKind::W, chunk.split[chunk.weights++]);
      d.free = option.start + costs.time[2];
      d.held -= costs.freed[2];
      return;
    }
    const bool backward = option.kind == Kind::G;
    const MicrobatchId m = chunk.next[backward];
    chunk.next[backward] += made_.copies;
    std::size_t cost = 0;
    if (backward) {
      if (problem_.recomputes()) add(BlockKind::R, m);
      const bool fused = random_.uniform() < (d.forwards == 0 ? taste_.fused_at_end : taste_.fused);
      add(fused ? BlockKind::B : BlockKind::D, m);
      if (!fused) chunk.split.push_back(m);
      if (!fused) ++left_;
      cost = fused ? 3 : 1;
    } else {
      add(BlockKind::F, m);
      --d.forwards;
      d.held += costs.taken;
    }
    d.held -= costs.freed[cost];
    if (backward) d.held += costs.again;
    d.free = option.start + costs.time[cost];
    send(option.chunk, backward, m, d.free);
  }

  void send(ChunkId c, bool backward, MicrobatchId m, std::int64_t ready) {
    const auto& chunk = problem_.chunk(c);
    if (!backward && chunk.is_last) {
      arrival_[at(problem_.id(Kind::G, c, m))] = ready;
      return;
    }
    if (backward && chunk.is_first) return;
    const auto& message = links_.messages[backward][c];
    const std::int32_t queue = links_.queue[backward][c];
    std::int64_t sent = ready + message.transfer;
    if (queue >= 0) {
      std::int64_t& free = link_free_[at(queue)];
      sent = free = std::max(ready, free) + message.transfer;
    }
    const ChunkId to = backward ? previous(c) : next(c);
    std::int64_t arrival = sent + message.latency;
    if (!backward) arrival = std::max(arrival, problem_.chunk(to).gathered);
    arrival_[at(problem_.id(backward ? Kind::G : Kind::F, to, m))] = arrival;
    devices_[problem_.chunk(to).device].next = -1;
  }

  const OrderProblem& problem_;
  const OrderProblem::Links& links_;
  Random random_;
  Taste taste_;
  Schedule made_;
  IndexedVector<DeviceId, Device> devices_;
  IndexedVector<ChunkId, Chunk> chunks_;
  std::vector<std::int64_t> arrival_;  ///< of what the block waits for
  std::vector<std::int64_t> link_free_;
  std::int64_t left_ = 0;  ///< blocks
};

}  // namespace

std::optional<Schedule> list_schedule(const OrderProblem& problem, const Schedule& like,
                                      std::uint64_t seed) {
  return ListScheduling{problem, like, seed}.run();
}

}  // namespace longhaul::planner
