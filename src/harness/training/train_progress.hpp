#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/checkpoint/resume_journal.hpp"
#include "harness/training/train_run.hpp"

namespace longhaul::harness {

/// What a run in --out has finished, so that --resume goes on: trials and curves in progress.json,
/// which rank 0 replaces as a whole (input.json once it is complete), a line for each in
/// journal.jsonl for `longhaul watch`, and of the curve under way a file of each rank's state,
/// FIRST-ITERATION.RANK.state, that it names.
class TrainProgress final : public CurveStore {
public:
  /// Collective. `asked`: all that the results depend on. Throws Error where the directory holds
  /// something else, or a run that was asked for something else; without `resume`, where it holds
  /// anything.
  TrainProgress(const comm::Communicator& world, std::filesystem::path directory, bool resume,
                const nlohmann::json& asked);

  /// Where nothing is left to run: what was wrong with what it found, "" where nothing was.
  [[nodiscard]] const std::optional<std::string>& complete() const { return complete_; }
  /// How many trials and curves there will be, on hosts that are known: before the first of them.
  void announce(int curves, const nlohmann::json& environment);
  /// The next load() and save() are of this curve, or of a trial, of so many exchanges.
  void begin(const std::string& name, int exchanges);
  /// On every rank: was it finished before? Then `curve` is what it was, on rank 0.
  [[nodiscard]] bool find(TrainCurve& curve);
  /// Collective: it is finished.
  void add(const TrainCurve& curve);
  /// On rank 0, before the record is written, by which the run is complete. `wrong`: what
  /// complete() will say; until then nothing.
  void settle(const std::string& wrong);
  /// After it.
  void forget();

  [[nodiscard]] int load(TrainCurve& curve, std::vector<std::byte>& state) override;
  void save(int iterations, const TrainCurve& curve, std::span<const std::byte> state) override;

private:
  [[nodiscard]] std::filesystem::path state_file(int iterations) const;
  [[nodiscard]] TrainCurve curve_of(const nlohmann::ordered_json& kept) const;
  void write() const;
  void remove_states(int but_of) const;
  void tell(int done, const TrainCurve& curve);

  const comm::Communicator& world_;
  std::filesystem::path directory_;
  std::string name_;
  nlohmann::ordered_json json_;       ///< progress.json, the same on all ranks
  std::unique_ptr<Journal> journal_;  ///< on rank 0
  std::vector<std::string> told_;     ///< names, in the order of the journal
  int exchanges_ = 0;                 ///< of the curve under way
  std::optional<std::string> complete_;
};

[[nodiscard]] nlohmann::ordered_json curve_state(const TrainCurve& curve);
[[nodiscard]] TrainCurve curve_of_state(const nlohmann::ordered_json& json);

}  // namespace longhaul::harness
