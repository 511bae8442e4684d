#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/error.hpp"

namespace longhaul {

/// Why an expected outcome is "not here": a schedule that is not defined on a scenario, a budget
/// that nothing fits. Worded as the text of an Error.
struct Refusal {
  std::string reason;
  ExitCode code = ExitCode::bad_input;  ///< of the Error that a caller makes of it
};

/// A Refusal with a formatted text: refused("stage {} is placed twice", stage).
template <typename... Args>
[[nodiscard]] Refusal refused(fmt::format_string<Args...> format, Args&&... args) {
  return {fmt::format(format, std::forward<Args>(args)...), ExitCode::bad_input};
}

/// Throws Error where there is a refusal.
inline void require_none(const std::optional<Refusal>& refusal) {
  if (refusal) throw Error{refusal->reason, refusal->code};
}

/// A value, or why there is none. What is wrong outside the program is an Error all the same:
///
///   const Result<Plan> plan = try_lower(schedule, scenario);
///   if (!plan) return plan.refusal();
///   use(*plan);
template <typename T>
class [[nodiscard]] Result {
public:
  Result(T value) : state_{std::move(value)} {}
  Result(Refusal refusal) : state_{std::move(refusal)} {}

  [[nodiscard]] explicit operator bool() const { return state_.index() == 0; }
  /// Only where there is a value.
  [[nodiscard]] const T& operator*() const& { return *std::get_if<0>(&state_); }
  [[nodiscard]] T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  [[nodiscard]] const T* operator->() const { return std::get_if<0>(&state_); }
  /// Only where there is none.
  [[nodiscard]] const Refusal& refusal() const { return *std::get_if<1>(&state_); }
  /// Throws Error with the reason where there is none.
  [[nodiscard]] T or_throw() && {
    if (!*this) throw Error{refusal().reason, refusal().code};
    return *std::move(*this);
  }

private:
  std::variant<T, Refusal> state_;
};

}  // namespace longhaul
