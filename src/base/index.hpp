#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace longhaul {

/// Prints the number and the size that it had to be below, and aborts.
[[noreturn]] void index_failed(std::int64_t number, std::size_t size);

/// Compiled out in release builds (NDEBUG): loops over tables are the simulator's whole work.
constexpr void check_index([[maybe_unused]] std::int64_t number,
                           [[maybe_unused]] std::size_t size) {
#ifndef NDEBUG
  if (number < 0 || static_cast<std::size_t>(number) >= size) [[unlikely]]
    index_failed(number, size);
#endif
}

/// A count, as the standard library has sizes. Not negative.
template <std::integral Number>
[[nodiscard]] constexpr std::size_t to_size(Number count) {
  if constexpr (std::is_signed_v<Number>) check_index(count, static_cast<std::size_t>(-1));
  return static_cast<std::size_t>(count);
}

/// Position of a number in the table that it indexes: row[at(device)]. Not negative. A strong id
/// has index(id) instead, or an IndexedVector.
template <std::integral Number>
[[nodiscard]] constexpr std::size_t at(Number number) {
  return to_size(number);
}

template <typename Kind>
[[nodiscard]] constexpr std::size_t at(CountedId<Kind> id) {
  return to_size(number(id));
}

/// Ids from `first` up to but without `last`: for (const DeviceId device : schedule.device_ids()).
template <AnyId Id>
class IdRange {
public:
  class iterator {
  public:
    using value_type = Id;
    using difference_type = std::ptrdiff_t;
    constexpr iterator() = default;
    constexpr explicit iterator(Id id) : id_{id} {}
    constexpr Id operator*() const { return id_; }
    constexpr iterator& operator++() {
      id_ = next(id_);
      return *this;
    }
    constexpr iterator operator++(int) {
      const iterator before = *this;
      ++*this;
      return before;
    }
    friend constexpr bool operator==(iterator, iterator) = default;

  private:
    Id id_{};
  };

  constexpr IdRange(Id first, Id last) : first_{first}, last_{last} {}
  [[nodiscard]] constexpr iterator begin() const { return iterator{first_}; }
  [[nodiscard]] constexpr iterator end() const { return iterator{last_}; }

private:
  Id first_, last_;
};

/// The ids 0 to count - 1.
template <AnyId Id>
[[nodiscard]] constexpr IdRange<Id> ids(int count) {
  return {Id{}, Id{count}};
}

/// The numbers of ids, for text and files.
template <AnyId Id>
[[nodiscard]] std::vector<NumberOf<Id>> numbers(const std::vector<Id>& ids) {
  std::vector<NumberOf<Id>> found;
  found.reserve(ids.size());
  for (const Id id : ids) found.push_back(number(id));
  return found;
}

/// A vector that an id of one kind indexes, and no other: IndexedVector<DeviceId, Duration> costs.
/// Positions are checked as assertions are; as fast as a vector in release builds.
template <AnyId Id, typename T>
class IndexedVector {
public:
  using value_type = T;
  using Items = std::vector<T>;

  IndexedVector() = default;
  /// `count` items, all equal to `value`.
  explicit IndexedVector(int count, const T& value = T{}) : items_(to_size(count), value) {}
  IndexedVector(std::initializer_list<T> items) : items_(items) {}
  /// Item i becomes that of the id of number i.
  explicit IndexedVector(Items items) : items_(std::move(items)) {}

  [[nodiscard]] decltype(auto) operator[](Id id) {
    check_index(number(id), items_.size());
    return items_[index(id)];
  }
  [[nodiscard]] decltype(auto) operator[](Id id) const {
    check_index(number(id), items_.size());
    return items_[index(id)];
  }

  [[nodiscard]] auto begin() { return items_.begin(); }
  [[nodiscard]] auto end() { return items_.end(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }
  [[nodiscard]] decltype(auto) front() { return items_.front(); }
  [[nodiscard]] decltype(auto) front() const { return items_.front(); }
  [[nodiscard]] decltype(auto) back() { return items_.back(); }
  [[nodiscard]] decltype(auto) back() const { return items_.back(); }

  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  /// Number of items as ids count.
  [[nodiscard]] int count() const { return static_cast<int>(items_.size()); }
  [[nodiscard]] IdRange<Id> ids() const { return {Id{}, end_id()}; }
  /// The id that the next item to be added gets.
  [[nodiscard]] Id end_id() const {
    return static_cast<Id>(static_cast<NumberOf<Id>>(items_.size()));
  }
  [[nodiscard]] bool contains(Id id) const { return number(id) >= 0 && index(id) < items_.size(); }

  void assign(int count, const T& value) { items_.assign(to_size(count), value); }
  void resize(int count) { items_.resize(to_size(count)); }
  void reserve(int count) { items_.reserve(to_size(count)); }
  void clear() { items_.clear(); }
  Id push_back(T item) {
    const Id id = end_id();
    items_.push_back(std::move(item));
    return id;
  }
  /// In order of id, without the ids: for text, files and algorithms.
  [[nodiscard]] const Items& items() const { return items_; }
  [[nodiscard]] Items& items() { return items_; }

  friend bool operator==(const IndexedVector&, const IndexedVector&) = default;

private:
  Items items_;
};

}  // namespace longhaul
