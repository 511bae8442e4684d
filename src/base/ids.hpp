#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace longhaul {

/// One rank of the run: rank = replica * stages + device (tensor parallelism lies inside costs).
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

template <typename Id>
inline constexpr Id kNone = static_cast<Id>(std::numeric_limits<std::underlying_type_t<Id>>::max());

/// Position of an id in the table that it indexes.
template <typename Id>
requires std::is_enum_v<Id>
[[nodiscard]] constexpr std::size_t index(Id id) { return static_cast<std::size_t>(id); }

/// The number that an id stands for, for text, files and arithmetic.
template <typename Id>
requires std::is_enum_v<Id>
[[nodiscard]] constexpr std::underlying_type_t<Id> number(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}

/// Ids in text are their numbers: fmt::format("replica {}", replica).
[[nodiscard]] constexpr std::int32_t format_as(ReplicaId id) { return number(id); }
[[nodiscard]] constexpr std::int32_t format_as(DeviceId id) { return number(id); }

/// The id after this one, and the one before.
template <typename Id>
requires std::is_enum_v<Id>
[[nodiscard]] constexpr Id next(Id id) { return static_cast<Id>(number(id) + 1); }
template <typename Id>
requires std::is_enum_v<Id>
[[nodiscard]] constexpr Id previous(Id id) { return static_cast<Id>(number(id) - 1); }

/// The id after this one in a ring of `count`.
template <typename Id>
requires std::is_enum_v<Id>
[[nodiscard]] constexpr Id next_in_ring(Id id, std::underlying_type_t<Id> count) {
  return static_cast<Id>((number(id) + 1) % count);
}

}  // namespace longhaul
