#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/index.hpp"
#include "base/listed_enum.hpp"
#include "base/units.hpp"
#include "base/vocabulary.hpp"
#include "scenario/model.hpp"
#include "scenario/served_model.hpp"
#include "scenario/training.hpp"

namespace longhaul {

/// The kind of work of an operator. A collective among tensor ranks blocks the device that waits.
#define LONGHAUL_OPERATOR_KINDS(X) \
  X(matmul, "matmul")              \
  X(elementwise, "elementwise")    \
  X(normalization, "normalization") X(attention, "attention") X(collective, "collective")
LONGHAUL_LISTED_ENUM(OperatorKind, LONGHAUL_OPERATOR_KINDS);

/// A part of a layer that a device computes as one. Times are of one microbatch, at speed 1.
struct Operator {
  std::string name;
  OperatorKind kind = OperatorKind::matmul;
  int layer = -1;  ///< of the model, from 0; -1: of a list without layers
  Bytes weights;
  Duration forward{}, dgrad{}, wgrad{}, recompute{};
  int tasks = -1;  ///< index into ModelOperators::tasks; -1: it is one task of its own name
};

/// A kernel of an operator.
struct OperatorTask {
  std::string name;
  Duration time{};
};
/// Below an operator: the tasks of each of its passes, in order. Index: BlockKind (B is empty).
using OperatorTasks = std::array<std::vector<OperatorTask>, 5>;

/// The operators below the blocks, of the whole model in forward order. Chunks hold consecutive
/// ones: schedule::operators_of_chunks().
struct ModelOperators {
  std::shared_ptr<const std::vector<Operator>> all{};  ///< nullptr: not known
  /// Blocks take what theirs take in sum. Otherwise a block's time is given, and its operators
  /// share it in proportion to theirs.
  bool are_costs = false;
  bool of_rank = false;  ///< times are of one of the tensor ranks, not of all together
  std::shared_ptr<const std::vector<OperatorTasks>> tasks{};  ///< of Operator::tasks
  [[nodiscard]] bool known() const { return all != nullptr; }
};

/// The three indices of a training rank.
#define LONGHAUL_RANK_DIMENSIONS(X) X(tensor, "tensor") X(stage, "stage") X(replica, "replica")
LONGHAUL_LISTED_ENUM(RankDimension, LONGHAUL_RANK_DIMENSIONS);
/// Which index of a rank runs fastest, which next.
using RankOrder = std::array<RankDimension, 3>;
inline constexpr RankOrder kTensorStageReplica{RankDimension::tensor, RankDimension::stage,
                                               RankDimension::replica};

/// When sharded weights that a unit has used in a forward are gathered for its backward: always;
/// unless the unit is the next that its rank uses; never, for they are kept for the iteration.
#define LONGHAUL_REGATHERS(X) \
  X(always, "always")         \
  X(all_but_last, "all-but-last") X(once, "once")
LONGHAUL_LISTED_ENUM(Regather, LONGHAUL_REGATHERS);

/// How tensor parallelism, FSDP and ZeRO communicate below blocks (src/collective/).
struct ShardingOptions {
  bool sequence_parallel = false;  ///< tensor ranks gather and scatter instead of all-reducing
  /// What is gathered together: so many layers; nullopt: an operator with weights.
  std::optional<int> unit_layers{};
  std::optional<int> prefetch{1};  ///< units that are gathered ahead; nullopt: as memory allows
  Regather regather = Regather::always;
  std::optional<Bytes> bucket{};  ///< gradients that are summed together; nullopt: of a chunk
  bool no_buckets = false;        ///< bucket = "none": of a chunk under every overlap
  int gradient_bytes = 2;         ///< of a number; weights have 2
  friend bool operator==(const ShardingOptions&, const ShardingOptions&) = default;
};

/// Microbatches that pass an interleaved chunk before the next one's turn (Centauri's L1, L2).
struct MicrobatchGroup {
  int forward = 1, backward = 1;
};

/// What tensor ranks send to the next stage: each the whole activation, or its part of it, which
/// the takers gather.
#define LONGHAUL_P2P_KINDS(X) X(full, "full") X(scatter_gather, "scatter-gather")
LONGHAUL_LISTED_ENUM(P2pKind, LONGHAUL_P2P_KINDS);

struct Parallel {
  int stages = 1;    ///< P: pipeline devices per replica
  int replicas = 1;  ///< data-parallel pipelines
  int tensor = 1;    ///< t: ranks that share each stage of each replica (tensor parallelism)
  int shard = 1;     ///< replicas that hold one copy of the weights together; divides replicas
  RankOrder order = kTensorStageReplica;
  int microbatches = 1;  ///< M, per replica and iteration; of several counts the largest
  std::vector<int> replica_microbatches{};  ///< M of each replica; empty: all have the same
  int chunks = 2;                           ///< v: chunks per device, where a schedule uses chunks
  int sub_blocks = 4;  ///< parts of a block, where a schedule splits blocks (CrossPipe 4.2.1)
  GradientSync gradient_sync = GradientSync::zero1;  ///< matters when replicas > 1
  /// C, pipelines of a DP-cell, for schedules that share the WAN in time (Atlas section 4.4).
  /// nullopt: cell_size() of the links.
  std::optional<int> cell;
  ShardingOptions sharding{};
  P2pKind p2p = P2pKind::scatter_gather;
  std::optional<MicrobatchGroup> microbatch_group{};  ///< nullopt: as many as stages
};

/// Costs of one microbatch on each device (index: device, 0..P-1), all its chunks together.
/// A device that holds v chunks spends 1/v on each, the remainder of a nanosecond or byte on the
/// first: see share().
struct Costs {
  std::vector<Duration> forward;
  std::vector<Duration> backward;  ///< one full backward block; defaults to dgrad + wgrad
  std::vector<Duration> dgrad;
  std::vector<Duration> wgrad;
  std::vector<Duration> recompute;
  std::vector<Bytes> activation;  ///< kept from F to the end of D and W
  std::vector<Bytes> message;  ///< at each chunk boundary after a chunk of this device, both ways
  std::vector<Bytes> weights;  ///< parameters of the device, as sent by data parallelism
  std::vector<Duration> optimizer;  ///< the step on the device's weights; empty: no time
};

/// The share of chunk `local` (0..v-1) of a device's cost.
[[nodiscard]] Duration share(Duration of_device, int chunks_on_device, int local);
[[nodiscard]] Bytes share(Bytes of_device, int chunks_on_device, int local);

struct Memory {
  double budget = 1.0;     ///< activations: 1.0 = min(P, M) activations of the largest stage
  bool recompute = false;  ///< F leaves only its input; an R precedes each D or B. Selective
                           ///< recomputation has no R: Model::selective_recompute
  std::vector<std::optional<Bytes>> capacity;  ///< of each device; nullopt where not given
  std::vector<std::optional<Bytes>> fixed;  ///< `static`: replaces weights + gradients + optimizer
};

struct Datacenter {
  std::string name;
  std::optional<int> gpus;  ///< how many there are; a placement that needs more is refused
  double speed = 1.0;       ///< of its devices, relative; the costs below are divided by it already
  std::string region{};     ///< "azure:eastus": where it lies, for tables of measured links
  std::optional<int> gpus_per_node{};     ///< of its nodes; default of NodeInterfaces::gpus
  std::optional<double> price{};          ///< $ per GPU and hour
  std::optional<double> egress_price{};   ///< $ per GB (1e9 bytes) that leaves it
  std::vector<std::string> gpu_models{};  ///< of all, or of each of its nodes; empty: not said
};

/// Each ordered pair of devices has the link to itself (CrossPipe's model), or all messages of an
/// ordered pair of datacenters share it, all replicas together.
#define LONGHAUL_SHARINGS(X) X(pair, "pair") X(datacenter, "datacenter")
LONGHAUL_LISTED_ENUM(Sharing, LONGHAUL_SHARINGS);

/// How a factor of mean 1 spreads; s is its standard deviation. Draws: plan/link_model/jitter.hpp.
/// A normal one is drawn again where it leaves 0 to 2; a uniform one lies between 1 - sqrt(3) s and
/// 1 + sqrt(3) s; an exponential one is 1 - s and a tail of mean s. X(enumerator, name, the largest
/// s): beyond 2 a log-normal factor is mostly tail, beyond 0.5 little of a normal one is left
/// between 0 and 2, beyond 1/sqrt(3) and 1 a uniform and an exponential one are below zero.
#define LONGHAUL_JITTER_KINDS(X) \
  X(lognormal, "lognormal", 2.0) \
  X(normal, "normal", 0.5) X(uniform, "uniform", 0.577) X(exponential, "exponential", 1.0)
LONGHAUL_LISTED_ENUM(JitterKind, LONGHAUL_JITTER_KINDS);

/// How the messages of a link vary around its latency and its rate (plan/link_model/jitter.hpp):
/// standard deviation over mean, the mean being what the link gives.
struct Jitter {
  double latency = 0;
  double transfer = 0;     ///< of the time that a message holds the link
  double correlation = 0;  ///< 0: each message by itself; 1: one for all of an iteration and way
  JitterKind kind = JitterKind::lognormal;
  std::optional<std::uint64_t> seed{};  ///< instead of run.seed
  [[nodiscard]] bool any() const { return latency > 0 || transfer > 0; }
};

/// A message whose packets are lost arrives later, once, by the time it takes to send them again
/// (CrossPipe 8.2: losses show as spikes of delay).
struct Loss {
  double probability = 0;           ///< of each message
  std::optional<Duration> delay{};  ///< nullopt: a round trip, twice the link's latency then
};

/// Nothing moves on the link from `begin` on; what is under way already arrives.
struct Outage {
  Duration begin{};  ///< since the start of the weather (docs/scenario.md, Weather)
  Duration length{};
};

/// State of a link from `at` on, until the next.
struct LinkState {
  Duration at{};
  Duration latency{};
  Bandwidth bandwidth;
};

/// A link over time, piecewise constant. The first state is at 0, times ascend, the last holds on.
struct LinkTrace {
  std::string name;  ///< of the file
  std::vector<LinkState> states;
  bool gives_latency = false;    ///< otherwise the link's own
  bool gives_bandwidth = false;  ///< otherwise the link's own
};

/// How a link departs from what its `latency` and `bandwidth` say, which schedules are made for.
struct LinkWeather {
  std::shared_ptr<const LinkTrace> trace{};  ///< nullptr: none
  std::optional<Duration> repeat{};          ///< the trace begins anew so often
  Loss loss{};
  std::vector<Outage> outages{};  ///< by begin; none overlaps another
  [[nodiscard]] bool any() const {
    return trace != nullptr || loss.probability > 0 || !outages.empty();
  }
};

/// TCP connections between two nodes: together they reach count * each, but at most the cap (Atlas
/// section 4.1).
struct Connections {
  int count = 1;
  Bandwidth each;  ///< of one connection at the link's latency: window / latency
  Bandwidth cap;   ///< of a node, whatever the number of connections
};

/// One direction. Latency is one-way.
struct Link {
  DatacenterId from{};
  DatacenterId to{};
  Duration latency{};
  Bandwidth bandwidth;  ///< between two nodes (or devices); of `connections` where they are given
  Sharing sharing = Sharing::pair;
  /// The rate between the ordered pair of datacenters, all nodes together: floor(aggregate / rate
  /// of a message) messages, at least 1, travel at a time, each at min(aggregate, bandwidth,
  /// interfaces).
  Bandwidth aggregate{};
  std::optional<Connections> connections{};  ///< the source of `bandwidth`
  Jitter jitter{};
  LinkWeather weather{};
};

/// Interfaces of the nodes of one datacenter, three levels of network: to the WAN (Atlas: 5 Gbps
/// each way), to the other nodes of the datacenter (Atlas: 100 Gbps), and of each GPU inside its
/// node. Node k of a datacenter holds its k-th `gpus` ranks, in order of rank.
struct NodeInterfaces {
  DatacenterId datacenter{};
  int gpus = 1;
  Bandwidth egress;
  Bandwidth ingress;
  Bandwidth internal{};  ///< each way, for messages between nodes of the datacenter
  Duration internal_latency{};
  Bandwidth device{};  ///< of a rank's port, each way, for messages inside its node
  Duration device_latency{};
};

/// Ranks that do not train: see RankRole.
struct ServiceRanks {
  RankRole role = RankRole::controller;
  DatacenterId datacenter{};
  int count = 1;
};

/// Where a rank stands: its role, and of one that trains its indices; others have no replica and no
/// stage (-1).
struct RankPlace {
  int tensor = 0;
  ReplicaId replica{};
  DeviceId stage{};
  RankRole role = RankRole::training;
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

struct Run {
  int iterations = 5;
  int warmup = 1;
  std::uint64_t seed = 1;
  double time_scale = 1.0;         ///< multiplies every duration when ranks play the scenario
  double noise = 0.0;              ///< standard deviation of a block's time over its mean
  std::vector<double> stragglers;  ///< factor on block times of each device; empty: all 1
};

/// Factor on the time that computation takes beside a message of each level that holds its rank's
/// port or interface; 1: none. To a thousandth. Of several messages at once the largest counts:
/// plan::Overlap.
struct OverlapSlowdown {
  double node = 1, datacenter = 1, wan = 1;
  [[nodiscard]] double largest() const { return std::max({node, datacenter, wan}); }
  friend bool operator==(const OverlapSlowdown&, const OverlapSlowdown&) = default;
};

/// How operators are cut so that communication hides beside them.
struct OverlapPieces {
  int most = 4;         ///< of a collective and its operator
  Duration overhead{};  ///< that each piece of an operator but the first adds
  friend bool operator==(const OverlapPieces&, const OverlapPieces&) = default;
};

/// The inputs of everything else, as plain data: complete, checked, in absolute units.
///
///     const Scenario scenario = load_scenario("two-sites.toml");
///     const Rank rank = scenario.rank(ReplicaId{0}, DeviceId{3});
///     const Duration forward = scenario.costs.forward[3];  // of one microbatch on device 3
struct Scenario {
  std::string name;
  std::string text;  ///< the TOML it came from, overrides appended as comments; for the trace
  std::optional<Model> model;
  std::vector<int> layers;  ///< of the model on each device; empty without a model
  Parallel parallel;
  Costs costs;                         ///< of every replica; where they differ, the largest
  std::vector<Costs> replica_costs{};  ///< of each replica; empty: all have `costs`
  ModelOperators operators;
  Memory memory;
  std::vector<Datacenter> datacenters;
  std::vector<ServiceRanks> services{};  ///< their ranks follow those that train, in this order
  /// Index: Rank. Empty: not placed yet (the planner of sites places them); then costs are of speed
  /// 1, whatever the datacenters' speeds.
  std::vector<DatacenterId> placement;
  std::vector<Link> links;            ///< at most one for each ordered pair
  std::vector<NodeInterfaces> nodes;  ///< at most one for each datacenter
  OverlapSlowdown overlap{};
  OverlapPieces pieces{};
  std::vector<ServedModel> served{};  ///< in the bubbles of training: [prefill]
  Training train{};
  Run run;

  /// Ranks that follow all others; where ranks are placed, with their places.
  void add_services(const ServiceRanks& added);
  [[nodiscard]] int ranks() const;  ///< all, with those that do not train
  [[nodiscard]] int training_ranks() const {
    return parallel.tensor * parallel.stages * parallel.replicas;
  }
  [[nodiscard]] IdRange<ReplicaId> replica_ids() const { return ids<ReplicaId>(parallel.replicas); }
  [[nodiscard]] IdRange<DeviceId> device_ids() const { return ids<DeviceId>(parallel.stages); }
  /// By the order of Parallel; with one rank a stage and the order that is not given, replica *
  /// stages + device.
  [[nodiscard]] Rank rank(ReplicaId replica, DeviceId device, int tensor = 0) const;
  [[nodiscard]] RankPlace place_of(Rank rank) const;
  /// Do some replicas have other costs, or other counts of microbatches, than others?
  [[nodiscard]] bool has_uneven_replicas() const {
    return !replica_costs.empty() || !parallel.replica_microbatches.empty();
  }
  [[nodiscard]] const Costs& costs_of(ReplicaId replica) const {
    return replica_costs.empty() ? costs : replica_costs[index(replica)];
  }
  [[nodiscard]] int microbatches_of(ReplicaId replica) const {
    const auto& counts = parallel.replica_microbatches;
    return counts.empty() ? parallel.microbatches : counts[index(replica)];
  }
  /// The replica alone, as the only one.
  [[nodiscard]] Scenario of_replica(ReplicaId replica) const;
  [[nodiscard]] bool is_placed() const { return !placement.empty(); }
  /// The GPU of each rank; empty where a datacenter with ranks names none.
  [[nodiscard]] std::vector<std::string> gpus_of_ranks() const;
  [[nodiscard]] DatacenterId datacenter_of(Rank rank) const { return placement[index(rank)]; }
  /// nullptr where none is given: no time inside a datacenter, no way between two.
  [[nodiscard]] const Link* link(DatacenterId from, DatacenterId to) const;
  [[nodiscard]] const NodeInterfaces* interfaces(DatacenterId of) const;
  /// Relative speed of the devices of a stage in replica 0; 1 where nothing is placed.
  [[nodiscard]] double speed_of_stage(DeviceId stage) const {
    return is_placed() ? datacenters[index(datacenter_of(rank(ReplicaId{0}, stage)))].speed : 1;
  }
  /// Largest forward time of a stage: the unit of latency_ratio and transfer_ratio.
  [[nodiscard]] Duration largest_forward() const;
  /// `budget` in bytes: budget * min(P, M) activations of the largest stage.
  [[nodiscard]] Bytes activation_budget() const;
  /// The same scenario with every duration multiplied by run.time_scale (which becomes 1).
  [[nodiscard]] Scenario as_played() const;
};

/// A complete scenario for tests and examples, without a file: `stages` devices, one datacenter,
/// F = D = W = `unit`, activation 2 MiB, message 1 MiB, weights 8 MiB.
[[nodiscard]] Scenario uniform_scenario(int stages, int microbatches,
                                        Duration unit = Duration{100});
/// Splits the devices of every replica evenly over `datacenters`, equal links between all pairs.
[[nodiscard]] Scenario spread(Scenario scenario, int datacenters, Duration latency,
                              Duration transfer_of_largest_message);

}  // namespace longhaul
