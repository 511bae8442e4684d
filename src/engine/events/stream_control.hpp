#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine_state.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::engine {

/// Lets one rank, which has no ops, choose times and sizes of later iterations of a stream from
/// what all others say of those that are over, while the stream goes on. All ranks give the same
/// answers to what is const. Calls come on the engine's thread.
class StreamControl {
public:
  StreamControl() = default;
  virtual ~StreamControl() = default;
  StreamControl(const StreamControl&) = delete;
  StreamControl& operator=(const StreamControl&) = delete;

  /// The rank that chooses.
  [[nodiscard]] virtual Rank controller() const = 0;
  [[nodiscard]] virtual std::size_t report_size() const = 0;
  [[nodiscard]] virtual std::size_t verdict_size() const = 0;
  /// Is there a verdict once `iteration` is over on all ranks? From first_open(iteration) on no op
  /// begins on a rank that has not heard it; larger for later iterations.
  [[nodiscard]] virtual bool is_due(int iteration) const = 0;
  [[nodiscard]] virtual int first_open(int iteration) const = 0;

  /// What a rank with ops says of an iteration when they are over: report_size() bytes.
  [[nodiscard]] virtual std::vector<std::byte> report(int iteration, const OpTimes& times) = 0;
  /// On the controller, of each rank in order of iteration.
  virtual void hear(int iteration, Rank from, std::span<const std::byte> report) = 0;
  /// On the controller, when all have reported a due iteration: verdict_size() bytes.
  [[nodiscard]] virtual std::vector<std::byte> verdict(int iteration) = 0;
  /// On every rank: the setting that it says, if it says one.
  [[nodiscard]] virtual std::optional<plan::StreamSetting> heed(
      int iteration, std::span<const std::byte> verdict) = 0;
};

/// Carries reports and verdicts of a StreamControl.
class ControlWords {
public:
  /// Both outlive this.
  ControlWords(EngineState& state, StreamControl& control);

  /// Iterations `first` to `past` - 1 begin: waits for what others say of them.
  void begin(int first, int past);
  /// This rank's ops of an iteration are over.
  void report(int iteration, const OpTimes& times);
  /// Is the completion one of its own? Then it has been heeded.
  [[nodiscard]] bool took(const comm::Completion& completion);
  /// Settings that verdicts have said since the last call.
  [[nodiscard]] std::vector<plan::StreamSetting> take_settings() {
    return std::exchange(settings_, {});
  }
  [[nodiscard]] bool may_begin(int iteration) const {
    return awaited_ >= past_ || iteration < control_.first_open(awaited_);
  }
  /// Nothing is on its way, and no one waits for more.
  [[nodiscard]] bool done() const { return awaited_ >= past_ && waits_.empty() && sent_.empty(); }

private:
  struct Wait {
    Rank from{};
    int iteration = 0;
    std::vector<std::byte> word;
  };
  void send(Rank to, std::vector<std::byte> word);
  void receive(Rank from, int iteration, std::size_t size);
  void heard(const Wait& report);
  void give_verdict(int iteration);
  [[nodiscard]] int next_due(int iteration) const;
  [[nodiscard]] bool decides() const { return control_.controller() == state_.host_ranks.self(); }

  EngineState& state_;
  StreamControl& control_;
  std::vector<Rank> others_;  ///< on the controller: ranks with ops
  int past_ = 0;              ///< iterations of this stretch end before it
  int awaited_ = 0;           ///< the first due iteration without a verdict; past_: none is
  std::unordered_map<int, std::size_t> reports_;  ///< on the controller: how many, by iteration
  std::unordered_map<comm::RequestId, Wait> waits_;
  std::unordered_map<comm::RequestId, std::vector<std::byte>> sent_;
  std::vector<plan::StreamSetting> settings_;
};

}  // namespace longhaul::engine
