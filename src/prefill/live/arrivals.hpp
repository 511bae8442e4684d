#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/listed_enum.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {

/// What a controller says of a request while a run goes on: it has a place (and may get another,
/// where its GPU could not begin it); no; it has its first token; its sender had gone before it
/// began; it was given to a GPU and did not end, or the controller that had it is gone. All but
/// the first come once, and last.
#define LONGHAUL_REQUEST_NEWS(X) \
  X(placed, "placed")            \
  X(refused, "refused") X(done, "done") X(cancelled, "cancelled") X(failed, "failed")
LONGHAUL_LISTED_ENUM(NewsKind, LONGHAUL_REQUEST_NEWS);

/// Times by the clock of requests.
struct RequestNews {
  NewsKind kind{};
  std::int64_t request = 0;
  Duration arrival{};
  std::int32_t pipeline = -1;  ///< placed, done: its number
  Duration start{}, end{};     ///< placed: as meant; done: `end` as it was
  RefusalReason reason{};      ///< refused
  std::string why{};           ///< failed, where more is known: who is gone
};

/// Why a request failed, in the words of clients and records; `datacenter`: its name, or empty.
[[nodiscard]] std::string gone_controller(const std::string& datacenter);

/// Requests as they arrive while a run goes on, by the clock of requests.
class Arrivals {
public:
  Arrivals() = default;
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;
  virtual ~Arrivals() = default;
  /// Adds those that have arrived by now and were not handed over yet, and whose sender has gone.
  virtual void collect(Duration now, std::vector<Request>& arrived,
                       std::vector<std::int64_t>& cancelled) = 0;
  /// When to collect next; Duration::max(): never.
  [[nodiscard]] virtual Duration next_look(Duration now) const = 0;
  /// All that would still arrive, at the run's end.
  [[nodiscard]] virtual std::vector<Request> rest() { return {}; }
  /// Who asks, by id: all that have arrived or will.
  [[nodiscard]] virtual std::vector<std::int64_t> offered() const = 0;
  /// What became of them, of a backlog's none.
  virtual void tell(const RequestNews& /*news*/) {}
  /// Is this pipeline of a served model, by number, to begin no more prompts?
  [[nodiscard]] virtual bool is_drained(std::size_t /*model*/, std::int32_t /*pipeline*/) const {
    return false;
  }
};

/// Those of a trace, by arrival.
class TraceArrivals final : public Arrivals {
public:
  explicit TraceArrivals(std::vector<Request> requests) : requests_{std::move(requests)} {}
  void collect(Duration now, std::vector<Request>& arrived,
               std::vector<std::int64_t>& cancelled) override;
  [[nodiscard]] Duration next_look(Duration now) const override;
  [[nodiscard]] std::vector<Request> rest() override;
  [[nodiscard]] std::vector<std::int64_t> offered() const override;

private:
  std::vector<Request> requests_;
  std::size_t next_ = 0;
};

}  // namespace longhaul::prefill
