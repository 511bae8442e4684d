#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "comm/cuda/buffer_pool.hpp"
#include "comm/cuda/lanes.hpp"
#include "comm/payload_backend.hpp"

namespace longhaul::comm {

/// Collectives of device memory by the host's transport: to pinned memory, there, and back. What
/// lies in the host's memory goes as it is.
class StagedCollectives {
public:
  StagedCollectives(Transport& host, Lanes& lanes) : host_{host}, lanes_{lanes} {}

  void begin(RequestId request, CollectiveKind kind, std::span<const Rank> members,
             const Exchange& exchange);
  [[nodiscard]] bool host_done(const Completion& completion, std::vector<Completion>& done);
  [[nodiscard]] bool busy() const { return under_way_ > 0; }

private:
  struct Staged;
  void exchange(const std::shared_ptr<Staged>& staged);
  void bring_back(const std::shared_ptr<Staged>& staged);

  Transport& host_;
  Lanes& lanes_;
  PinnedPool pinned_;
  int under_way_ = 0;
  std::unordered_map<RequestId, std::shared_ptr<Staged>> at_host_;
};

}  // namespace longhaul::comm
