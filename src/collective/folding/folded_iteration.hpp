#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "collective/folding/member_steps.hpp"
#include "collective/folding/rank_symmetry.hpp"
#include "collective/iteration/iteration_lowering.hpp"
#include "plan/network/network.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::collective {

/// The ranks that stand for all others, with their parts of communications (FoldedIteration).
class FoldedRanks final : public IterationTarget {
public:
  /// `symmetry` and `steps` outlive it.
  FoldedRanks(const IterationPlan& plan, const RankSymmetry& symmetry, KnownSteps& steps,
              LoweredIteration& made);

  [[nodiscard]] bool has(Rank rank) const override {
    return symmetry_.representative(rank) == rank;
  }
  [[nodiscard]] OpId standing_for(OpId side) const override;
  [[nodiscard]] ResourceSetId resources(std::size_t base_lane) override;
  [[nodiscard]] std::optional<Refusal> add(DeviceId stage, CommunicationId id) override;
  [[nodiscard]] std::size_t ops_to_lay_out() const override { return 2 * messages_; }
  void lay_out(Rank rank) override;
  [[nodiscard]] std::vector<OpId> arrivals(Rank rank, CommunicationId id) const override;
  [[nodiscard]] std::vector<OpId> last_ops(Rank rank, CommunicationId id) const override;
  void gate(Rank rank, CommunicationId id, OpId before) override;
  void fill() override;

  /// Something was met that differs from rank to rank, or that they share.
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool orders_all_the_same(ResourceId resource, LaneId first, LaneId second) const;

private:
  /// Messages of a rank to another, and to the one that stands for it.
  struct LanePair {
    Rank from{}, to{};
    int queue = 0, stream = 0;
    std::uint32_t count = 0, first_send = 0, first_receive = 0;
    LaneId send{}, receive{};
    ResourceSetId set{};
    Bandwidth rate{};
    Duration latency{};
  };
  using LaneKey = std::tuple<Rank, int, Rank, int>;  ///< from, queue, to, stream
  struct Range {
    std::uint32_t lane = 0, offset = 0;
  };
  /// Of a rank in a communication.
  struct Part {
    const MemberSteps* steps = nullptr;
    Rank rank{};
    CollectiveKind kind{};
    int queue = 0;
    bool in_ring = false;
    Bytes least, most;              ///< of a message in a ring, on all ranks
    std::uint32_t out = 0, in = 0;  ///< first of its lines' ranges
    std::vector<OpId> gates;
  };
  /// Of a part's messages to one rank.
  struct LineOut {
    std::uint32_t first_send = 0, first_receive = 0;
    ChunkId chunk{};  ///< of the receiver's part
    plan::Route route{};
    std::optional<Bytes> known{};  ///< the size of the messages that these are:
    Op send{}, receive{};
  };
  struct Groups {
    std::vector<std::vector<Rank>> members;
    std::vector<std::pair<int, int>> at;  ///< by rank: group and place in it
    std::vector<int> places;              ///< of the ranks that are laid out
    /// The least by which images turn groups: they turn them by multiples of it; 0: by nothing.
    int turn = 0;
  };

  const Groups& groups(DeviceId stage, Members members);
  void join_lines(std::size_t first_part, const Groups& groups);
  std::uint32_t lane_pair(Rank from, Rank to, int queue, int stream);
  std::pair<ResourceId, int> held(const schedule::RouteSegment& segment, Rank from, Rank to);
  ResourceSetId route_set(Rank from, Rank to, LanePair* pair);
  [[nodiscard]] std::size_t part_of(Rank rank, CommunicationId id) const;
  [[nodiscard]] OpId op_of(const Part& part, MemberSteps::Ref ref) const;
  [[nodiscard]] std::vector<OpId> last_of(const Part& part) const;
  void gate_by_order();
  void fill_part(std::size_t number);
  [[nodiscard]] LineOut line_out(const Part& part, std::uint32_t line, const CommunicationRef& of);
  void fill_waits(const Part& part, const MemberSteps::Send& send, Op& op);
  [[nodiscard]] bool holds_shared(ResourceSetId set) const;
  void make_messages(std::size_t number, LineOut& line, const MemberSteps::Send& first, Bytes size);
  void look_whether_empty(const Op& send);
  void look_for_empty_messages();

  const IterationPlan& iteration_;
  const Plan& base_;
  const Scenario& scenario_;
  const RankSymmetry& symmetry_;
  KnownSteps& steps_;
  LoweredIteration& made_;
  Plan& out_;
  schedule::NetworkRoutes routes_;
  bool failed_ = false;
  std::size_t messages_ = 0;
  std::vector<std::vector<Rank>> ranks_;       ///< by stage: those that are laid out, ascending
  std::vector<std::uint32_t> place_in_stage_;  ///< by rank that is laid out
  std::map<std::tuple<Rank, OpKind, Rank>, std::size_t> base_lanes_;  ///< by rank, kind, peer
  std::map<std::pair<DeviceId, Members>, Groups> groups_;
  std::map<LaneKey, std::uint32_t> lane_of_;
  std::vector<LanePair> lanes_;
  std::vector<Part> parts_;
  std::vector<std::vector<std::uint32_t>> first_part_;  ///< by stage and communication
  std::vector<Range> ranges_;
  std::vector<LineOut> lines_;           ///< of the part that is filled
  std::vector<std::uint32_t> first_in_;  ///< by line that comes in to it: its first receive
  std::map<schedule::LinkResource, ResourceId> resource_of_;
  /// Beside Plan::set_items: the image that brings the resource to the one that stands for it.
  std::vector<int> brings_;
  std::vector<std::int32_t> pair_of_lane_;  ///< by lane of the plan; -1: none
};

/// What iterations of one scenario have in common, whatever its sharding and whatever is decided of
/// them: a search folds thousands of them. For one thread at a time.
struct FoldingMemo {
  KnownSteps steps;
  KnownSymmetries symmetries;
};

/// An iteration in which some ranks stand for all (RankSymmetry): their operations and messages
/// alone. A message to a rank goes to the one that stands for it, as that which it would get from
/// the like of its sender; what is held is that of the ones that stand for others. Simulated, each
/// op ends when it does in the whole iteration, and so do the ops that it stands for, as long as
/// resources serve all of these in the same order: orders_all_the_same().
class FoldedIteration {
public:
  /// None where no rank can stand for another: nothing is the same, many share a link that is there
  /// once, messages of one collective take different times, ranks have extras.
  /// It takes from `memo`, which outlives it, what another has put there.
  [[nodiscard]] static std::optional<FoldedIteration> of(const IterationPlan& plan,
                                                         FoldingMemo& memo);

  FoldedIteration(FoldedIteration&&) noexcept;
  ~FoldedIteration();

  [[nodiscard]] const LoweredIteration& lowered() const { return *lowered_; }
  [[nodiscard]] LoweredIteration take() && { return std::move(*lowered_); }
  /// Of ops of two lanes that ask for a resource in the same instant the one with the lower id
  /// comes first. Does the like of the first come first for all ranks that these stand for?
  [[nodiscard]] bool orders_all_the_same(ResourceId resource, LaneId first, LaneId second) const;

private:
  FoldedIteration(std::unique_ptr<LoweredIteration> lowered, std::unique_ptr<FoldedRanks> ranks);
  std::unique_ptr<LoweredIteration> lowered_;
  std::unique_ptr<FoldedRanks> ranks_;
};

}  // namespace longhaul::collective
