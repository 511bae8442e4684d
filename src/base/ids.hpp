#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <fmt/core.h>

namespace longhaul {

/// One rank of the run: Scenario::rank() numbers them.
enum class Rank : std::int32_t {};
/// A data-parallel copy of the pipeline.
enum class ReplicaId : std::int32_t {};
/// A device of the pipeline, the same in every replica: 0 to P - 1.
enum class DeviceId : std::int32_t {};
/// Index into Scenario::datacenters.
enum class DatacenterId : std::int32_t {};
/// Global id of an op of a Plan; joins predicted and measured rows; breaks ties of time.
enum class OpId : std::uint32_t {};
/// Index into Plan::lanes.
enum class LaneId : std::uint32_t {};
/// Index into Plan::resources.
enum class ResourceId : std::uint32_t {};

/// An id that generators and layers count with: it converts to its number where one is wanted, and
/// a number becomes an id only where that is written. Ids of different kinds do not mix.
///
///     const ChunkId chunk{3};
///     schedule.runs(chunk, MicrobatchId{chunk + 1});  // runs(chunk, chunk) does not compile
template <typename Kind>
class CountedId {
public:
  constexpr CountedId() = default;
  template <std::integral Number>
  constexpr explicit CountedId(Number number) : number_{static_cast<std::int32_t>(number)} {}
  template <typename Other>
  CountedId(CountedId<Other>) = delete;

  constexpr operator std::int32_t() const { return number_; }
  constexpr CountedId& operator++() {
    ++number_;
    return *this;
  }
  constexpr CountedId& operator+=(std::int32_t further) {
    number_ += further;
    return *this;
  }

  friend constexpr auto operator<=>(CountedId, CountedId) = default;
  template <typename Other>
  requires(!std::is_same_v<Kind, Other>) friend bool operator==(CountedId,
                                                                CountedId<Other>) = delete;

private:
  std::int32_t number_ = 0;
};

/// A part of the model: 0 to P - 1, or more where a device holds several.
using StageId = CountedId<struct StageKind>;
/// A stage of one copy of the model: the global stage index in forward order, copy by copy.
using ChunkId = CountedId<struct ChunkKind>;
/// A part of the batch: 0 to M - 1.
using MicrobatchId = CountedId<struct MicrobatchKind>;

template <typename Id>
struct NumberOfId {};
template <typename Id>
requires std::is_enum_v<Id>
struct NumberOfId<Id> {
  using Type = std::underlying_type_t<Id>;
};
template <typename Kind>
struct NumberOfId<CountedId<Kind>> {
  using Type = std::int32_t;
};
/// The type of an id's number.
template <typename Id>
using NumberOf = typename NumberOfId<Id>::Type;
template <typename Id>
concept AnyId = requires {
  typename NumberOf<Id>;
};

template <typename Id>
inline constexpr Id kNone = static_cast<Id>(std::numeric_limits<NumberOf<Id>>::max());

/// Position of an id in the table that it indexes.
template <AnyId Id>
[[nodiscard]] constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}

/// The number that an id stands for, for text, files and arithmetic.
template <AnyId Id>
[[nodiscard]] constexpr NumberOf<Id> number(Id id) {
  return static_cast<NumberOf<Id>>(id);
}

/// Ids in text are their numbers: fmt::format("replica {}", replica).
[[nodiscard]] constexpr std::int32_t format_as(ReplicaId id) { return number(id); }
[[nodiscard]] constexpr std::int32_t format_as(DeviceId id) { return number(id); }

/// The id after this one, and the one before.
template <AnyId Id>
[[nodiscard]] constexpr Id next(Id id) {
  return static_cast<Id>(number(id) + 1);
}
template <AnyId Id>
[[nodiscard]] constexpr Id previous(Id id) {
  return static_cast<Id>(number(id) - 1);
}

/// The id after this one in a ring of `count`.
template <AnyId Id>
[[nodiscard]] constexpr Id next_in_ring(Id id, NumberOf<Id> count) {
  return static_cast<Id>((number(id) + 1) % count);
}

}  // namespace longhaul

/// As its number: fmt::format("chunk {}", chunk).
template <typename Kind>
struct fmt::formatter<longhaul::CountedId<Kind>> : fmt::formatter<std::int32_t> {
  auto format(longhaul::CountedId<Kind> id, auto& context) const {
    return fmt::formatter<std::int32_t>::format(id, context);
  }
};
