#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "comm/transport.hpp"

namespace longhaul {

/// The transport cannot go on: with the operation `ticket`, where it is known. Ends the run with
/// the watchdog's report.
class TransportError : public Error {
public:
  TransportError(std::optional<RequestId> ticket, const std::string& what)
      : Error{what, ExitCode::run_failed}, ticket_{ticket} {}
  [[nodiscard]] std::optional<RequestId> ticket() const { return ticket_; }

private:
  std::optional<RequestId> ticket_;
};

}  // namespace longhaul
