#pragma once

#include <deque>
#include <functional>
#include <source_location>
#include <string>

#include <nccl.h>

#include "base/error.hpp"
#include "base/version.hpp"

namespace longhaul::comm::nccl {

/// Throws Error (exit code 3) with NCCL's own words unless `code` is success or in progress (what
/// communicators that do not block say). `comm`, where there is one: whose last error is named.
inline void check(ncclResult_t code, ncclComm_t comm = nullptr,
                  std::source_location where = std::source_location::current()) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  throw Error{fmt::format("NCCL: {} ({}) ({}, {}). NCCL_DEBUG=INFO makes it say more.",
                          ncclGetErrorString(code), ncclGetLastError(comm), source_place(where),
                          where.function_name()),
              ExitCode::run_failed};
}

[[nodiscard]] ncclUniqueId new_unique_id();

/// Owns one communicator that does not block, and the calls that wait for it. Use it from the
/// thread whose device it is made on. After an error, or if it is not finished at its end, it is
/// aborted: no kernel waits for a peer that is gone.
class Channel {
public:
  /// The other ranks do the same some time; returns at once. `what` it is for, and with whom,
  /// is part of its errors.
  Channel(const ncclUniqueId& id, int ranks, int rank, std::string what);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  struct Call {
    std::function<ncclResult_t(ncclComm_t)> begin;  ///< one operation of NCCL
    std::function<void()> begun;                    ///< its stream has been given all of it
  };
  /// Calls are made one after the other, as soon as NCCL takes them.
  void add(Call call) { calls_.push_back(std::move(call)); }
  /// Makes calls. Throws Error where anything of this communicator has failed since.
  void advance();
  [[nodiscard]] bool busy() const { return !calls_.empty(); }

  /// Nothing more will be called. is_finished() once the others have said so too.
  void finish();
  [[nodiscard]] bool is_finished();
  void abort();

private:
  [[nodiscard]] bool is_ready();
  void require(ncclResult_t code,
               std::source_location where = std::source_location::current()) const;

  std::string what_;
  ncclComm_t comm_ = nullptr;  ///< none: aborted
  std::deque<Call> calls_;
  bool begun_ = false;  ///< the first of them
  bool finishing_ = false;
};

}  // namespace longhaul::comm::nccl
