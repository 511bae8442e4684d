#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/device.hpp"
#include "engine/payloads/data_plane.hpp"
#include "training/chunk_blocks.hpp"
#include "training/parts/local_methods.hpp"
#include "training/parts/part_method.hpp"
#include "training/parts/part_ops.hpp"
#include "training/parts/set_envelope.hpp"

namespace longhaul::training {

/// Lets threads through one after the other, by number from 0.
class InTurn {
public:
  /// Waits for its turn, runs `work`, and lets the next one through, also where it throws.
  void run(int turn, const std::function<void()>& work);
  /// The next one. While no one waits.
  void set_next(int turn) { next_ = turn; }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int next_ = 0;
};

/// Gradients of one part that are not finite: rank, part, tensor and place.
class BadGradient : public Error {
public:
  using Error::Error;
};

/// The real work of one rank of replicas that train in parts (GradientSync::compressed): blocks of
/// its chunks, and what its host tasks do with gradients, sets and weights. Weights that a block
/// uses are those of the version that its F of the part met, until its last gradient; updates go
/// into other memory.
class ReplicaWork final : public engine::StreamWork {
public:
  struct Settings {
    TrainingModel model;  ///< shape.batch is this replica's
    MakePartMethod make_method;
    int keep_every = 0;    ///< iterations: weights of these are kept for later; 0: of none
    int last = -1;         ///< an iteration of which they are, too
    bool accounts = true;  ///< sums up all gradients and steps: 16 bytes a number
    /// Goes on where a gradient is not finite, and says so: has_diverged().
    bool survives_bad_gradients = false;
    /// Steps of this replica alone, after each microbatch's last gradient of a part; the method
    /// gets the outer gradient (LocalSteps). `model.tokens` is then of one microbatch of its own.
    std::optional<StepSettings> local{};
    float outer_weight = 1;           ///< of its outer gradients: its batch over the mean one
    double loss_share = 1;            ///< factor of the losses of an iteration's blocks
    plan::PartExchanges exchanges{};  ///< of the plan
    /// Local steps go on from one iteration to the next, and each update is mixed in: share of the
    /// replica's own weights (LocalSteps::meet). nullopt: they begin anew with each update.
    std::optional<float> mixing{};
  };
  /// All outlive this. Throws Error as ChunkBlocks, where the method cannot be, and where local
  /// steps meet a schedule that begins a microbatch before the last one is over.
  ReplicaWork(const Plan& plan, const Schedule& schedule, const Scenario& scenario, Rank self,
              nn::TensorOps& math, nn::DeviceMemory& memory, Settings settings);

  void run(OpId op, int iteration, int version) override;
  /// From `iteration` on, which has not begun on this rank, in ascending order, while a stream runs
  /// or before it: another batch, scale of losses and share of the numbers that is kept.
  struct Change {
    int batch = 1;
    double tokens = 0;  ///< of an iteration, of all replicas
    double keep = 1;
  };
  void change_from(int iteration, const Change& change);
  /// After the last iteration.
  void finish();
  /// Between two stretches of iterations: all that the next one depends on. Throws Error where the
  /// method keeps none.
  void save(StateWriter& to) const;
  /// Of the same plan and settings; `iterations` have been run.
  void load(StateReader& from, int iterations);

  // For the data plane, on the engine's thread.
  using Bytes = std::shared_ptr<std::vector<std::byte>>;
  [[nodiscard]] const PartOps& part_ops() const { return ops_; }
  [[nodiscard]] ChunkBlocks& blocks() { return blocks_; }
  [[nodiscard]] nn::TensorOps& math() { return math_; }
  /// What message `message` of a part carries: the last asked for of an iteration frees what is
  /// kept for others.
  [[nodiscard]] Bytes sent_set(std::size_t part, int message, int iteration);
  void received_set(std::size_t part, int message, int iteration, Bytes payload);
  [[nodiscard]] std::size_t largest_set(std::size_t part) const;

  // After the stream.
  /// See Settings::survives_bad_gradients.
  [[nodiscard]] bool has_diverged() const { return has_diverged_; }
  [[nodiscard]] const ChunkBlocks::Chunks& chunks() const { return blocks_.chunks(); }
  /// This rank's part of the loss of each iteration since the last call.
  [[nodiscard]] std::vector<double> take_losses() { return std::exchange(losses_, {}); }
  /// Of each part: its numbers among those of the rank's chunks, one chunk after the other.
  struct Range {
    std::size_t first = 0, count = 0;
  };
  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }
  /// After the last update. All numbers of the rank.
  [[nodiscard]] std::vector<float> weights() const;
  /// After updates that are kept, since the last call: by iteration.
  [[nodiscard]] std::map<int, std::vector<float>> take_kept();
  /// Of a part, as PartMethod has them. A rank whose gradients another sums has seen its own, and
  /// nothing waits with it.
  [[nodiscard]] std::span<const float> residual(std::size_t part) const;
  [[nodiscard]] std::span<const double> gradients_seen(std::size_t part) const;
  [[nodiscard]] std::span<const double> sums_seen(std::size_t part) const;

private:
  /// What is under way of a part in an iteration.
  struct Flight {
    std::vector<float> gradient;
    std::vector<Bytes> own, of_site;  ///< by round
    std::map<int, Bytes> received;    ///< by message
    Bytes handed_on;                  ///< weights for others of the node
    int sent = 0;
    bool updated = false;
  };
  struct Version {
    int iteration = -1;
    std::shared_ptr<const std::vector<float>> weights;
  };
  struct Part {
    std::unique_ptr<PartMethod> method;  ///< nullptr: another of the node has it
    nn::Chunk* chunk = nullptr;
    Range in_chunk;                                                 ///< of Chunk::all_weights()
    std::optional<LocalSteps> local;                                ///< of Settings::local
    std::vector<double> seen;                                       ///< sum of gathered gradients
    std::vector<float> weights;                                     ///< as the optimizer steps them
    std::map<int, std::shared_ptr<const std::vector<float>>> made;  ///< and not in place
    std::deque<Version> versions;                                   ///< in place, ascending
    std::map<int, Flight> flights;                                  ///< by iteration
    InTurn sets, choices, answers, updates;
  };

  void make_part(const PlannedPart& planned, const nn::ParameterPlaces& tensors);
  void run_block(OpId op, int iteration, int version);
  void begin_iteration(int iteration);
  void place_weights(Part& part, int version);
  void put_weights(Part& part, const std::vector<float>& weights);
  [[nodiscard]] bool makes_gradients(OpId op, const PlannedPart& planned) const;
  void require_turns(const Schedule& schedule) const;
  void step_locally(Part& part);
  [[nodiscard]] std::vector<float> gradient_of(const Part& part);
  void take_gradient(std::size_t part, int iteration);
  void run_task(const PartOps::TaskOf& task, int iteration);
  [[nodiscard]] std::vector<std::byte> own_set(Part& part, int iteration,
                                               std::vector<float>& gradient);
  void forget_bad(std::vector<float>& gradient);
  [[noreturn]] void name_bad(std::size_t part, int iteration, std::size_t place) const;
  void make_own_set(std::size_t part, int iteration);
  void look_at(std::size_t part, int iteration, std::vector<float>& gradient);
  void gather(std::size_t part, int iteration);
  void take_weights(std::size_t part, int iteration, std::span<const std::byte> payload);
  void choose(std::size_t part, int iteration, int round);
  void answer(std::size_t part, int iteration, int round);
  void merge(std::size_t part, int iteration);
  void optimize(std::size_t part, int iteration);
  void publish(std::size_t part, int iteration);
  void keep(std::size_t part, int iteration);
  [[nodiscard]] Flight& flight(std::size_t part, int iteration);
  [[nodiscard]] std::vector<SetPayload> sets_of(std::size_t part, int iteration, int round,
                                                const std::vector<int>& messages, bool of_site);
  [[nodiscard]] std::vector<SetPayload> sets_to_sum(std::size_t part, int iteration, int round);
  [[nodiscard]] Bytes sealed_set(std::size_t part, int iteration,
                                 std::span<const std::byte> set) const;
  [[nodiscard]] std::string name_of(std::size_t part, int iteration, Rank from) const;
  void forget_if_over(Part& part, std::size_t number, int iteration);

  const Plan& plan_;
  Rank self_;
  nn::TensorOps& math_;
  Settings settings_;
  int staleness_;
  int late_;  ///< iterations that an update waits in the only buffer
  PartOps ops_;
  ChunkBlocks blocks_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Range> ranges_;
  std::vector<double> losses_;
  std::map<int, std::vector<float>> kept_;
  std::map<int, std::vector<std::pair<Range, CatchUp>>> to_catch_up_;  ///< of kept_
  std::map<int, Change> changes_;                                      ///< from an iteration on
  std::atomic<bool> has_diverged_ = false;
  std::mutex mutex_;  ///< of flights, versions, changes and what is kept
};

}  // namespace longhaul::training
