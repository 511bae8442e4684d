#pragma once

#include <cstdint>
#include <vector>

#include "base/listed_enum.hpp"
#include "base/units.hpp"
#include "scenario/served_model.hpp"

namespace longhaul::prefill {

/// When the keys and values of a prompt leave the GPU that computed them: layer by layer, while
/// later layers compute, or when its last layer is done.
#define LONGHAUL_KV_SENDINGS(X) X(layerwise, "layerwise") X(whole, "whole")
LONGHAUL_LISTED_ENUM(KvSending, LONGHAUL_KV_SENDINGS);

/// A message of training that holds a GPU's interface, in each iteration.
struct InterfaceHold {
  Duration start{}, end{};
  std::int64_t op = -1;
};

/// A message of training that waited for a slice of keys and values.
struct KvWait {
  std::int64_t iteration = 0;
  std::int64_t op = -1;
  Duration waited{};
};

/// Bytes that may be sent from a time on.
struct ReadyBytes {
  Duration at{};
  Bytes bytes;
};

/// The interfaces of the GPUs inside their datacenters. Keys and values pass in slices of low
/// priority: none starts while a message of training holds the interface, or waits for it, and such
/// a message waits for the end of a slice at most.
class KvLink {
public:
  /// Messages of training by GPU, by start, that do not overlap.
  KvLink(Duration period, std::vector<std::vector<InterfaceHold>> holds);

  /// Sends what gets ready, in that order, from GPU `rank`: the end of the last slice on the
  /// interface. Served in order of calls.
  [[nodiscard]] Duration send(std::int32_t rank, const std::vector<ReadyBytes>& ready,
                              const DecodeLink& link);
  /// The same end, and nothing is sent.
  [[nodiscard]] Duration end_of(std::int32_t rank, const std::vector<ReadyBytes>& ready,
                                const DecodeLink& link);
  [[nodiscard]] const std::vector<KvWait>& waits() const { return waits_; }
  /// The sum of waits().
  [[nodiscard]] Duration waited() const { return waited_; }

private:
  [[nodiscard]] Duration send_slice(std::int32_t rank, Duration from, Duration length);
  void hold_back(std::int32_t rank, std::size_t hold, std::int64_t iteration, Duration until);

  Duration period_;
  std::vector<std::vector<InterfaceHold>> holds_;
  std::vector<Duration> free_;     ///< by GPU: when the last slice has left
  std::vector<Duration> blocked_;  ///< by GPU: when the messages have left that it held back
  std::vector<KvWait> waits_;
  Duration waited_{};
};

/// Has this model a decode rank, and keys and values that are known?
[[nodiscard]] inline bool sends_kv(const ServedModel& model) {
  return model.decode && model.dimensions;
}

/// The bytes of a stage's layers as they get ready in a pass: [start, start + time).
[[nodiscard]] std::vector<ReadyBytes> ready_layers(Bytes bytes, int layers, Duration start,
                                                   Duration time, KvSending sending);

/// Keys and values of so many tokens that the GPU of a stage computes. Precondition: the model has
/// dimensions.
[[nodiscard]] Bytes stage_kv(const ServedModel& model, std::int64_t tokens, int stage);

/// A slice of what a stage sends.
struct KvSlice {
  int part = 0;  ///< it may leave when so many parts of the stage, and one more, are computed
  Bytes bytes;
  Duration takes{};  ///< on the interface: of all slices of the stage rounded once
};
/// All of a prompt in one pass, in their order: a stage has as many parts as layers, or is one
/// where it is sent whole. Precondition: the model has dimensions and a `decode`.
[[nodiscard]] std::vector<KvSlice> kv_slices(const ServedModel& model, std::int64_t tokens,
                                             int stage, KvSending sending);

}  // namespace longhaul::prefill
