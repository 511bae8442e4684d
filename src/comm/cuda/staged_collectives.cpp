#include "comm/cuda/staged_collectives.hpp"

namespace longhaul::comm {

struct StagedCollectives::Staged {
  RequestId request{};
  CollectiveKind kind{};
  std::vector<Rank> members;
  Exchange of_caller;
  bool on_device = false;
  std::shared_ptr<std::byte> mine{}, result{};  ///< pinned
};

namespace {

/// Both of a member's memories lie in one place; it may lack one of them.
bool has_memory_on_device(const Exchange& exchange) {
  return exchange.result.empty() ? is_on_device(exchange.mine.data())
                                 : is_on_device(exchange.result.data());
}

}  // namespace

void StagedCollectives::begin(RequestId request, CollectiveKind kind, std::span<const Rank> members,
                              const Exchange& exchange_of_caller) {
  const auto staged = std::make_shared<Staged>(Staged{request,
                                                      kind,
                                                      {members.begin(), members.end()},
                                                      exchange_of_caller,
                                                      has_memory_on_device(exchange_of_caller)});
  ++under_way_;
  if (!staged->on_device) return exchange(staged);
  const Exchange& caller = staged->of_caller;
  staged->result = pinned_.take(caller.result.size());
  const cudaStream_t stream = lanes_.stream(Side::send, kNone<LaneId>, members.front());
  if (caller.mine.empty()) return lanes_.after(stream, [this, staged] { exchange(staged); });
  staged->mine = pinned_.take(caller.mine.size());
  cuda::check(cudaMemcpyAsync(staged->mine.get(), caller.mine.data(), caller.mine.size(),
                              cudaMemcpyDeviceToHost, stream));
  lanes_.after(stream, [this, staged] { exchange(staged); });
}

void StagedCollectives::exchange(const std::shared_ptr<Staged>& staged) {
  Exchange exchange = staged->of_caller;
  if (staged->on_device) {
    exchange.mine = {staged->mine.get(), exchange.mine.size()};
    exchange.result = {staged->result.get(), exchange.result.size()};
  }
  at_host_.emplace(host_.collective(staged->kind, staged->members, exchange), staged);
}

bool StagedCollectives::host_done(const Completion& completion, std::vector<Completion>& done) {
  const auto found = at_host_.find(completion.request);
  if (found == at_host_.end()) return false;
  const std::shared_ptr<Staged> staged = found->second;
  at_host_.erase(found);
  --under_way_;
  if (staged->on_device) {
    bring_back(staged);
  } else {
    done.push_back({staged->request, completion.size_bytes});
  }
  return true;
}

void StagedCollectives::bring_back(const std::shared_ptr<Staged>& staged) {
  const std::span<std::byte> result = staged->of_caller.result;
  const cudaStream_t stream = lanes_.stream(Side::receive, kNone<LaneId>, staged->members.front());
  Lanes::MarkHandle mark = lanes_.begin(stream);
  cuda::check(cudaMemcpyAsync(result.data(), staged->result.get(), result.size(),
                              cudaMemcpyHostToDevice, stream));
  lanes_.end({staged->request, result.size(), {}, std::move(mark), [staged] {}}, stream);
}

}  // namespace longhaul::comm
