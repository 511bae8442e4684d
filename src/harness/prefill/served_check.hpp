#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/prefill/served_work.hpp"
#include "harness/prefill/stretch_outcome.hpp"

namespace longhaul::harness {

/// What real layers made of prompts, held against one rank that computes all of them by itself.
struct ServedReport {
  static constexpr double kAllowed = 1e-5;  ///< difference of a number
  static constexpr int kDecoded = 8;        ///< tokens of each prompt

  std::int64_t prompts = 0, tokens = 0;
  double logits_difference = 0;  ///< the largest, of a prompt's last token
  std::int64_t kv_bytes = 0;     ///< that decode ranks have received
  bool kv_equal = true;          ///< byte for byte as sent
  double kv_difference = 0;      ///< the largest, of those sent
  std::int64_t decoded = 0;      ///< tokens, from received keys and values
  bool decoded_equal = true;
  std::vector<std::string> wrong;  ///< the first few, in words
  std::int64_t wrong_prompts = 0;
};
[[nodiscard]] nlohmann::ordered_json served_json(const ServedReport& report);

/// One rank: each whole model, which computes each prompt at once. After the run, on rank 0.
class ServedCheck {
public:
  explicit ServedCheck(const PlannedStretches& planned);

  /// The prompts of a stretch that were done: logits of the last token, keys and values as they
  /// were sent and as they came, and the tokens that follow from those that came.
  void check(const FilledStretch& stretch, const StretchOutcome& outcome,
             const ServedNumbers& numbers);
  [[nodiscard]] const ServedReport& report() const { return report_; }

private:
  struct Model {
    std::unique_ptr<nn::ServedLayers> layers;
    int decoders = 0;
  };
  /// The stages of one decision: [first, past) of the plan's.
  struct Prompt {
    const FilledStretch& stretch;
    const prefill::Decision& decision;
    std::size_t first = 0, past = 0;
  };
  [[nodiscard]] std::string why_wrong(const Prompt& prompt, const ServedNumbers& numbers);
  [[nodiscard]] std::string compare_keys(const Prompt& prompt, const ServedNumbers& numbers);
  [[nodiscard]] std::string compare_tokens(const Prompt& prompt, const ServedNumbers& numbers,
                                           std::vector<float> expected);
  [[nodiscard]] std::vector<float> prefill(const Prompt& prompt);
  [[nodiscard]] std::vector<float> pass(Model& model, std::int64_t prompt,
                                        std::span<const std::int32_t> tokens) const;
  [[nodiscard]] std::vector<std::int32_t> decode(Model& model, std::int64_t prompt,
                                                 std::vector<float> logits) const;
  [[nodiscard]] Model& model_of(const Prompt& prompt) { return models_[prompt.decision.model]; }

  const PlannedStretches& planned_;
  std::unique_ptr<nn::TensorOps> math_;
  std::unique_ptr<nn::DeviceMemory> memory_;
  std::vector<Model> models_;
  ServedReport report_;
};

}  // namespace longhaul::harness
