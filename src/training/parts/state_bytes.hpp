#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "compress/optimizer/sparse_optimizer.hpp"

namespace longhaul::training {

/// What a rank remembers, as bytes of this machine: numbers, and vectors with their lengths.
class StateWriter {
public:
  template <typename Value>
  requires std::is_trivially_copyable_v<Value>
  void put(const Value& value) {
    const auto bytes = std::as_bytes(std::span{&value, 1});
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <typename Value>
  void put_all(std::span<const Value> values) {
    put(static_cast<std::uint64_t>(values.size()));
    const auto bytes = std::as_bytes(values);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

private:
  std::vector<std::byte> bytes_;
};

/// Reads it in the same order. Throws Error where there is something else than is asked for.
class StateReader {
public:
  explicit StateReader(std::span<const std::byte> bytes) : left_{bytes} {}

  template <typename Value>
  [[nodiscard]] Value take() {
    Value value;
    std::memcpy(&value, bytes_of(sizeof value), sizeof value);
    return value;
  }
  template <typename Value>
  [[nodiscard]] std::vector<Value> take_all() {
    std::vector<Value> values;
    take_into(values);
    return values;
  }
  template <typename Value, typename Memory>
  void take_into(std::vector<Value, Memory>& values) {
    const auto count = take<std::uint64_t>();
    if (count > left_.size() / sizeof(Value)) refuse_short();
    values.resize(static_cast<std::size_t>(count));
    if (count > 0)
      std::memcpy(values.data(), bytes_of(count * sizeof(Value)), count * sizeof(Value));
  }
  /// Into as many as there are.
  template <typename Value, typename Memory>
  void take_same(std::vector<Value, Memory>& values) {
    const std::size_t count = values.size();
    take_into(values);
    if (values.size() != count)
      fail("a checkpoint has {} numbers in the place of {} (it is of another run). Begin anew.",
           values.size(), count);
  }
  [[nodiscard]] bool is_over() const { return left_.empty(); }

private:
  [[noreturn]] static void refuse_short() {
    fail("a checkpoint ends early (it is of another run, or damaged). Begin anew.");
  }
  const std::byte* bytes_of(std::uint64_t size) {
    if (size > left_.size()) refuse_short();
    const std::byte* const at = left_.data();
    left_ = left_.subspan(static_cast<std::size_t>(size));
    return at;
  }

  std::span<const std::byte> left_;
};

inline void save_optimizer(StateWriter& to, const compress::OptimizerState& state) {
  to.put_all<float>(state.first);
  to.put_all<float>(state.second);
  to.put_all<std::uint32_t>(state.last_step);
}
/// Into a state of the same optimizer.
inline void load_optimizer(StateReader& from, compress::OptimizerState& state) {
  from.take_same(state.first);
  from.take_same(state.second);
  from.take_same(state.last_step);
}

}  // namespace longhaul::training
