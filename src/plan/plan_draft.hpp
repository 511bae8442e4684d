#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::plan {

/// A plan made by hand: lanes, what they hold, and ops, in any order. Ids are given when it is
/// made, so that ops, lanes and dependencies may be added in the order in which one thinks of them.
///
///     PlanDraft draft{"mine"};
///     const Rank rank = draft.add_rank("west");
///     const ResourceId device = draft.add_resource("device 0", ResourceKind::device);
///     const LaneId blocks = draft.add_lane(rank, "compute", OpKind::compute, {device});
///     const PlanDraft::Handle first = draft.add_block(blocks, 10ms);
///     const PlanDraft::Handle second = draft.add_block(blocks, 20ms);
///     draft.after(second, first);
///     const Plan plan = draft.make();
class PlanDraft {
public:
  /// Names an op until make() gives it its id.
  enum class Handle : std::size_t {};
  struct Message {
    Handle send{}, recv{};
  };

  explicit PlanDraft(std::string name);

  /// Its device is the only stage of a replica of its own.
  Rank add_rank(const std::string& datacenter, int node = 0);
  ResourceId add_resource(std::string name, ResourceKind kind, std::uint32_t capacity = 1,
                          Serve serve = Serve::order);
  /// All ops of the lane hold `holds`; a lane of receives holds what its sends do.
  LaneId add_lane(Rank rank, std::string name, OpKind kind, std::vector<ResourceId> holds = {},
                  Serve serve = Serve::order);

  Handle add_block(LaneId lane, Duration duration, const Block& block = {});
  /// Both sides of a message, on a lane of sends and one of receives.
  Message add_message(LaneId sends, LaneId receives, Duration transfer, Duration latency,
                      Bytes size = {}, const Block& producer = {});
  /// The same message in slices, one after the other on the same lanes; it has arrived when the
  /// last has. They share the transfer evenly, the first ones a nanosecond more.
  std::vector<Message> add_slices(LaneId sends, LaneId receives, int slices, Duration transfer,
                                  Duration latency, Bytes size = {}, const Block& producer = {});
  /// One op of each lane; they start together and hold what their lanes say.
  std::vector<Handle> add_collective(CollectiveKind kind, const std::vector<LaneId>& lanes,
                                     Duration duration);

  /// `op` waits for `before`, of its own rank.
  void after(Handle op, Handle before);
  /// `op` waits for `before`, of any rank, `iterations_back` iterations before its own.
  void after(Handle op, Handle before, int iterations_back);
  /// `op` notes which iteration of `before` it met.
  void meets(Handle op, Handle before, int iterations_back = 0);
  void window(Handle op, Duration not_before, Duration deadline = kNoDeadline);
  void priority(Handle op, std::int32_t priority);
  /// It is of a request from outside.
  void serves(Handle op, std::int32_t request, std::int32_t tokens);
  void task(Handle op, TaskKind kind);
  /// A lane's source; `make` is called with the ids that its ops got, in the order of adding.
  void source(LaneId lane,
              std::function<std::unique_ptr<OpSource>(const std::vector<OpId>& ops)> make);
  void overlap(const Overlap& overlap) { plan_.extras.overlap = overlap; }

  /// Lays out ids: rank by rank, lane by lane, of a lane in the order of adding. Call last.
  [[nodiscard]] Plan make();
  /// Ids of lanes are given by rank too. Only after make().
  [[nodiscard]] OpId id(Handle op) const { return ids_[static_cast<std::size_t>(op)]; }
  [[nodiscard]] LaneId id(LaneId lane) const { return lane_ids_[index(lane)]; }

private:
  struct DraftLane {
    Lane lane;
    ResourceSetId holds{};
    std::vector<Handle> ops;
    std::function<std::unique_ptr<OpSource>(const std::vector<OpId>& ops)> source;
  };
  struct Link {
    Handle op{}, before{};
    int iterations_back = 0;
    enum class Kind : std::uint8_t { near, far, weak } kind = Kind::near;
  };
  Handle add(LaneId lane, const Op& op);
  [[nodiscard]] Op& op_of(Handle op) { return ops_[static_cast<std::size_t>(op)]; }
  void lay_out();
  void connect();

  Plan plan_;
  std::vector<DraftLane> lanes_;
  std::map<std::vector<ResourceId>, ResourceSetId> sets_;  ///< lanes that hold the same share one
  std::vector<Op> ops_;  ///< `match` of messages: the other side's handle
  std::vector<Link> links_;
  std::vector<OpId> ids_;
  std::vector<LaneId> lane_ids_;
};

}  // namespace longhaul::plan
