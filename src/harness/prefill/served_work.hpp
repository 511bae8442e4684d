#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/payloads/data_plane.hpp"
#include "engine/ranks.hpp"
#include "harness/prefill/planned_stretches.hpp"
#include "nn/layers/served_layers.hpp"

namespace longhaul::harness {

/// The shape of a served model's real layers. Throws Error where they cannot be made: without
/// dimensions, of heads that do not make up the hidden size, of more parameters than CPUs compute.
[[nodiscard]] nn::ModelShape served_shape(const ServedModel& model);
/// Those of a stage: the embedding on the first, the head on the last.
[[nodiscard]] nn::LayerRange served_range(const ServedModel& model, int stage);
/// The tokens of a prompt, which requests have the number of alone.
[[nodiscard]] std::vector<std::int32_t> prompt_tokens(std::uint64_t seed, std::int64_t request,
                                                      std::int64_t tokens, int vocabulary);
[[nodiscard]] std::uint64_t served_seed(const Scenario& scenario, std::size_t model);

/// What ranks have computed of the prompts of a stretch, by stage (FilledPlan::stages).
struct ServedNumbers {
  std::map<std::size_t, std::vector<float>> logits;          ///< of the last token, last stages'
  std::map<std::size_t, std::vector<float>> sent, received;  ///< keys and values, layer by layer
};

/// Real layers of the served models on one rank: what its GPU computes of the prompts of a stretch,
/// and what their messages carry. Numbers travel as the f32 that they are computed in, twice the
/// bytes of the plan's fp16. run() is called by the device's thread, the rest by the engine's.
class ServedWork final : public prefill::DrawListener {
public:
  /// `planned` outlives this. Throws Error as served_shape().
  ServedWork(const PlannedStretches& planned, Rank self);

  /// Plays this stretch from now on; nothing is left of the last one.
  void begin(const FilledStretch& stretch);
  /// Plays a stretch of this plan, which lives as long: its sources say what it is.
  void begin_live(const prefill::LivePlan& live);
  void drawn(const prefill::DrawnPart& part) override;
  void drawn(const prefill::SentSlice& slice) override;
  [[nodiscard]] bool knows(OpId op) const { return jobs_.contains(op); }
  void run(OpId op);
  [[nodiscard]] engine::Payload make(OpId send);
  [[nodiscard]] engine::Payload room(OpId recv) const;
  /// Whether its size is right: what it holds is judged after the run (ServedCheck).
  [[nodiscard]] engine::Payloads::Verdict check(OpId recv, std::span<const std::byte> bytes) const;
  void deliver(OpId recv, const engine::Payload& payload);
  /// Another number in the payload.
  static void corrupt(const engine::Payload& payload);

  [[nodiscard]] const ServedNumbers& numbers() const { return numbers_; }
  /// Collective: rank 0 gets what all ranks have computed and received, by stage of the stretch as
  /// it was filled; the others nothing.
  [[nodiscard]] ServedNumbers gather(const engine::Ranks& ranks, const FilledStretch& stretch);

private:
  struct Job {
    enum class What { compute, hop, slice };
    What what{};
    std::vector<std::size_t> stages{};  ///< of a computation those of all prompts in the pass
    int part = 0, parts = 1;            ///< of a computation
    std::size_t first = 0, count = 0;   ///< numbers that a message carries, of the stage's
  };
  /// A stage of a pass of a prompt. Of a planned stretch they stand as there.
  struct Stage {
    std::int64_t request = 0, prompt = 0;  ///< tokens of all passes
    std::size_t model = 0;
    int stage = 0;
    std::int64_t context = 0, tokens = 0;
  };
  struct Model {
    nn::ModelShape shape;
    nn::LayerRange range;
    std::unique_ptr<nn::ServedLayers> layers;
  };
  void list_jobs(const FilledStretch& stretch);
  [[nodiscard]] nn::ServedPass begin_pass(const Job& job, Model& model);
  void keep_keys(const Job& job, Model& model, int layer);
  void end_pass(const Job& job, Model& model, const nn::ServedPass& pass);
  [[nodiscard]] bool is_last(const Stage& stage) const {
    return stage.stage + 1 == planned_.served[stage.model].model.stages;
  }
  void forget_stretch();
  [[nodiscard]] std::size_t stage_of_slot(const prefill::LiveOp& op, int stage) const;
  [[nodiscard]] const Job* job_of(OpId op) const;
  [[nodiscard]] std::vector<float> rows_for(std::size_t stage) const;
  void sort_arrived(const FilledStretch& stretch);

  const PlannedStretches& planned_;
  Rank self_;
  std::unique_ptr<nn::TensorOps> math_;
  std::unique_ptr<nn::DeviceMemory> memory_;
  std::map<std::size_t, Model> models_;  ///< that this rank holds a stage of
  const prefill::LivePlan* live_ = nullptr;
  std::int64_t longest_ = 0;                      ///< prompt
  std::map<std::size_t, nn::ServedPass> passes_;  ///< by its first stage: between its parts
  mutable std::mutex mutex_;                      ///< of what follows
  std::unordered_map<OpId, Job> jobs_;
  std::deque<Stage> stages_;  ///< which keep their places
  std::map<std::tuple<std::int32_t, std::int32_t, int>, std::size_t> slots_;  ///< of a live one
  std::map<std::pair<std::int64_t, int>, std::size_t>
      stage_of_;                                ///< by request and stage, likewise
  std::map<OpId, std::vector<float>> arrived_;  ///< by receive, likewise
  std::map<std::size_t, std::vector<float>> rows_in_, rows_out_;
  ServedNumbers numbers_;
};

}  // namespace longhaul::harness
