#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.hpp"
#include "plan/plan_draft.hpp"

namespace longhaul::testing {

/// Draws the ops of its lane in their order, some with other times and with words, but waits now
/// and then for a time, for an end or for what comes first, and may end an iteration early: all by
/// its seed and by what it has heard.
class WhimsicalSource : public plan::OpSource {
public:
  WhimsicalSource(std::vector<OpId> ops, std::uint64_t seed)
      : ops_{std::move(ops)}, random_{seed} {}
  plan::Decision next(const plan::PastEvents& past) override {
    for (const plan::OpEnd& end : past.ended())
      heard_ = derived_seed(
          derived_seed(heard_, index(end.op), static_cast<std::uint64_t>(end.end.count())),
          static_cast<std::uint64_t>(end.words[0]), static_cast<std::uint64_t>(end.words[1]));
    Random whim{derived_seed(heard_, random_.next(), static_cast<std::uint64_t>(past.iteration()))};
    const std::int64_t choice = whim.between(0, 9);
    if (std::exchange(iteration_, past.iteration()) != past.iteration())
      next_ = 0;  // where nothing ended any more, the iteration was ended for it
    if (choice == 0) return plan::WaitUntil{past.now() + Duration{whim.between(1, 30)}};
    if (choice == 1) return plan::WaitForEnd{};
    if (choice == 3) return plan::WaitForEnd{past.now() + Duration{whim.between(1, 30)}};
    if (next_ < ops_.size() && choice == 4)
      return plan::Draw{ops_[next_++],
                        Duration{whim.between(0, 30)},
                        {whim.between(0, 1000), whim.between(0, 1000)}};
    if (next_ < ops_.size() && choice != 2) return plan::Draw{ops_[next_++]};
    next_ = 0;
    return plan::LaneOver{};
  }

private:
  std::vector<OpId> ops_;
  Random random_;
  std::uint64_t heard_ = 1;
  std::size_t next_ = 0;
  int iteration_ = -1;
};

/// What a random plan may have.
struct EventFeatures {
  bool choosing = true, windows = true, far = true, sources = true, overlap = true;
  bool collectives = true;
  int iterations = 3;
  bool slices = false;
};

/// A small plan of blocks, host tasks and messages between two to four ranks. An op depends on ops
/// that were made before it, and lanes keep the order of making, so that none deadlocks.
class RandomEventPlan {
public:
  RandomEventPlan(std::uint64_t seed, const EventFeatures& features)
      : random_{seed}, features_{features} {
    make_ranks();
    const std::int64_t ops = between(6, 18);
    for (std::int64_t i = 0; i < ops; ++i) add_op();
    if (features_.far && all_.size() > 1) add_far();
    if (features_.windows) add_windows();
    if (features_.sources) add_sources();
    if (features_.overlap && between(0, 1) == 0) {
      constexpr std::array kSlowdowns{1.0, 1.5, 2.0, 3.0, 4.0};
      const auto any = [&] { return kSlowdowns[static_cast<std::size_t>(between(0, 4))]; };
      const double node = any(), datacenter = any(), wan = any();
      draft_.overlap(plan::Overlap::of(node, datacenter, wan));
    }
    plan = draft_.make();
    stream.iterations = static_cast<int>(between(1, features_.iterations));
    if (stream.iterations > 1 && between(0, 2) == 0) {
      const Duration first = time(), last = time();
      stream.settings.push_back(
          {1, {{OpId{0}, first}, {OpId{static_cast<std::uint32_t>(plan.ops.size() - 1)}, last}}});
    }
  }

  Plan plan;
  plan::Stream stream;

private:
  using Handle = plan::PlanDraft::Handle;
  struct RankLanes {
    Rank rank{};
    std::vector<LaneId> compute;
    std::vector<Handle> ops;  ///< that others of the rank may wait for
  };
  struct Channel {
    std::size_t from = 0, to = 0;
    LaneId sends{}, receives{};
  };

  std::int64_t between(std::int64_t low, std::int64_t high) { return random_.between(low, high); }
  Duration time() {
    constexpr std::array kTimes{0, 5, 10, 10, 15, 20, 30, 40};
    return Duration{kTimes[static_cast<std::size_t>(between(0, 7))]};
  }
  Serve any_serve() {
    return features_.choosing ? static_cast<Serve>(between(0, 2)) : Serve::order;
  }
  Serve choosing_serve() {
    return features_.choosing ? static_cast<Serve>(between(1, 2)) : Serve::order;
  }

  void make_ranks() {
    const std::int64_t ranks = between(2, 4);
    for (std::int64_t r = 0; r < ranks; ++r) add_rank(r);
    for (std::size_t a = 0; a < ranks_.size(); ++a)
      for (std::size_t b = 0; b < ranks_.size(); ++b)
        if (a != b && between(0, 2) > 0) add_channels(a, b);
    if (!features_.collectives || between(0, 1) == 0) return;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const ResourceId turn =
          draft_.add_resource(fmt::format("collective {}", r), ResourceKind::collective);
      collective_.push_back(
          draft_.add_lane(ranks_[r].rank, "collective", OpKind::collective, {turn}));
    }
  }
  void add_rank(std::int64_t r) {
    RankLanes& lanes = ranks_.emplace_back();
    const std::int64_t datacenter = between(0, 1), node = between(0, 1);
    lanes.rank = draft_.add_rank(fmt::format("dc{}", datacenter), static_cast<int>(node));
    // With slowdowns a device of several lanes chooses.
    const bool two = between(0, 2) == 0;
    const Serve serve = two && features_.overlap ? choosing_serve() : any_serve();
    const bool shared = two && (serve != Serve::order || !features_.overlap);
    const ResourceId device = draft_.add_resource(fmt::format("device {}", r), ResourceKind::device,
                                                  1, shared ? serve : Serve::order);
    lanes.compute.push_back(draft_.add_lane(lanes.rank, "compute", OpKind::compute, {device},
                                            shared ? Serve::order : serve));
    if (shared)
      lanes.compute.push_back(draft_.add_lane(lanes.rank, "other", OpKind::compute, {device}));
    if (between(0, 1) == 0) return;
    const auto count = static_cast<std::uint32_t>(between(1, 3));
    const ResourceId workers =
        draft_.add_resource(fmt::format("workers {}", r), ResourceKind::workers, count);
    lanes.compute.push_back(
        draft_.add_lane(lanes.rank, "host", OpKind::compute, {workers}, any_serve()));
  }
  void add_channels(std::size_t a, std::size_t b) {
    // One link for all lanes from a, or one of the pair.
    const bool shared = between(0, 1) == 0;
    const Serve serve = any_serve();
    if (shared && !out_.contains(a))
      out_[a] = {draft_.add_resource(fmt::format("egress {}", a), ResourceKind::egress,
                                     static_cast<std::uint32_t>(between(1, 2)), serve),
                 serve};
    const Serve lane_serve = shared ? Serve::order : serve;
    const ResourceId link =
        shared ? out_[a].first
               : draft_.add_resource(fmt::format("link {}>{}", a, b), ResourceKind::link);
    for (std::int64_t lanes = between(1, 2); lanes > 0; --lanes) {
      if (!shared && lanes == 2) continue;  // of a link of the pair there is one lane
      channels_.push_back(
          {a, b,
           draft_.add_lane(ranks_[a].rank, fmt::format("send>{}", b), OpKind::send, {link},
                           lane_serve),
           draft_.add_lane(ranks_[b].rank, fmt::format("recv<{}", a), OpKind::recv, {},
                           lane_serve == Serve::order ? Serve::order : Serve::arrival)});
    }
  }

  void depend(RankLanes& rank, Handle op) {
    for (std::int64_t count = between(0, 2); count > 0 && !rank.ops.empty(); --count)
      draft_.after(op, rank.ops[static_cast<std::size_t>(between(0, std::ssize(rank.ops) - 1))]);
    if (features_.far && between(0, 3) == 0) {
      const auto pick = [&] {
        return all_[static_cast<std::size_t>(between(0, std::ssize(all_) - 1))];
      };
      if (!all_.empty()) {
        const Handle before = pick();
        draft_.after(op, before, static_cast<int>(between(0, 2)));
      }
      if (!all_.empty() && between(0, 1) == 0) {
        const Handle met = pick();
        draft_.meets(op, met, static_cast<int>(between(0, 1)));
      }
    }
    if (between(0, 1) == 0) draft_.priority(op, static_cast<std::int32_t>(between(-2, 2)));
  }
  void add_op() {
    const std::int64_t kind = between(0, 9);
    if (kind >= 8 && !collective_.empty()) {
      const auto members = draft_.add_collective(CollectiveKind::all_reduce, collective_, time());
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (between(0, 1) == 0 && !ranks_[r].ops.empty() && !features_.windows &&
            !features_.sources)
          draft_.after(members[r], ranks_[r].ops.back());
        ranks_[r].ops.push_back(members[r]);
      }
    } else if (kind >= 4 && !channels_.empty()) {
      const Channel& channel =
          channels_[static_cast<std::size_t>(between(0, std::ssize(channels_) - 1))];
      if (features_.slices && between(0, 1) == 0) return add_slices(channel);
      const Duration transfer = time(), latency = time();
      const auto message = draft_.add_message(channel.sends, channel.receives, transfer, latency);
      depend(ranks_[channel.from], message.send);
      if (between(0, 3) == 0) depend(ranks_[channel.to], message.recv);
      ranks_[channel.to].ops.push_back(message.recv);
      ranks_[channel.from].ops.push_back(message.send);
      all_.push_back(message.recv);
      made_.push_back(message.send);
    } else {
      RankLanes& rank = ranks_[static_cast<std::size_t>(between(0, std::ssize(ranks_) - 1))];
      const LaneId lane =
          rank.compute[static_cast<std::size_t>(between(0, std::ssize(rank.compute) - 1))];
      const Handle block = draft_.add_block(lane, time());
      depend(rank, block);
      rank.ops.push_back(block);
      all_.push_back(block);
      made_.push_back(block);
    }
  }
  /// A message that lets others pass.
  void add_slices(const Channel& channel) {
    const auto count = static_cast<int>(between(2, 4));
    const Duration transfer = time(), latency = time();
    const auto slices = draft_.add_slices(channel.sends, channel.receives, count, transfer, latency,
                                          Bytes{between(1, 100)});
    for (const auto& slice : slices) {
      depend(ranks_[channel.from], slice.send);
      made_.push_back(slice.send);
      all_.push_back(slice.recv);
      ranks_[channel.to].ops.push_back(slice.recv);
    }
  }
  /// On any op of an earlier iteration.
  void add_far() {
    const auto pick = [&] {
      return all_[static_cast<std::size_t>(between(0, std::ssize(all_) - 1))];
    };
    for (std::int64_t count = between(0, 4); count > 0; --count) {
      const Handle op = pick(), before = pick();
      draft_.after(op, before, static_cast<int>(between(1, 2)));
    }
  }
  void add_windows() {
    for (const Handle op : made_) {
      if (between(0, 4) != 0) continue;
      const Duration not_before{between(0, 60)};
      const bool endless = between(0, 4) == 0;
      draft_.window(op, not_before,
                    endless ? plan::kNoDeadline : not_before + Duration{between(0, 90)});
    }
  }
  void add_sources() {
    for (const RankLanes& rank : ranks_) {
      if (between(0, 3) != 0) continue;
      const std::uint64_t seed = random_.next();
      // A lane that chooses has no source: the check of plans says so, and the caller leaves it
      // out.
      draft_.source(rank.compute.back(), [seed](const std::vector<OpId>& ops) {
        return std::make_unique<WhimsicalSource>(ops, seed);
      });
    }
  }

  Random random_;
  EventFeatures features_;
  plan::PlanDraft draft_{"random"};
  std::vector<RankLanes> ranks_;
  std::vector<Channel> channels_;
  std::vector<LaneId> collective_;
  std::map<std::size_t, std::pair<ResourceId, Serve>> out_;
  std::vector<Handle> all_, made_;
};

}  // namespace longhaul::testing
