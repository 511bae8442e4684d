#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/index.hpp"
#include "comm/group/thread_group.hpp"

namespace longhaul::comm {
namespace {

std::vector<std::byte> bytes_of(const auto& parts) {
  const auto bytes = std::as_bytes(std::span{parts});
  return {bytes.begin(), bytes.end()};
}

std::int64_t word_of(const ThreadGroup::Part& part, std::size_t place = 0) {
  std::int64_t word = 0;
  std::memcpy(&word, part.bytes.data() + place * sizeof word, sizeof word);
  return word;
}

/// First of a key, so that groups from different calls are told apart.
enum Founding : std::int64_t { by_split, by_members };

class ThreadBackend final : public GroupBackend {
public:
  ThreadBackend(std::shared_ptr<ThreadGroup> group, int rank)
      : group_{std::move(group)}, rank_{rank} {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return group_->size(); }
  [[nodiscard]] MPI_Comm comm() const override { return MPI_COMM_NULL; }

  [[nodiscard]] Handle duplicate(const OnWait& on_wait) override {
    return split(0, rank_, on_wait);
  }
  [[nodiscard]] Handle split(int color, int key, const OnWait& on_wait) override {
    const auto round =
        group_->exchange(rank_, {bytes_of(std::array<std::int64_t, 2>{color, key}), {}}, on_wait);
    std::vector<std::pair<std::int64_t, int>> members;  // by key, then by rank
    for (int other = 0; other < size(); ++other) {
      const ThreadGroup::Part& part = round->parts[at(other)];
      if (word_of(part) == color) members.emplace_back(word_of(part, 1), other);
    }
    std::ranges::sort(members);
    const auto place = std::ranges::find(members, rank_, &std::pair<std::int64_t, int>::second);
    const ThreadGroup::Key name{by_split, static_cast<std::int64_t>(round->number), color};
    return make_thread_backend(group_->found(name, static_cast<int>(members.size())),
                               static_cast<int>(place - members.begin()));
  }
  /// They all are.
  [[nodiscard]] Handle split_by_host(const OnWait& on_wait) override { return duplicate(on_wait); }
  [[nodiscard]] Handle subgroup(std::span<const int> members, int tag) override {
    ThreadGroup::Key name{by_members, tag};
    name.insert(name.end(), members.begin(), members.end());
    name.push_back(asked_[name]++);  // the members' first such group, their second ...
    const auto place = std::ranges::find(members, rank_);
    return make_thread_backend(group_->found(name, static_cast<int>(members.size())),
                               static_cast<int>(place - members.begin()));
  }

  void barrier(const OnWait& on_wait) override { (void)exchange({}, on_wait); }
  [[nodiscard]] std::string broadcast(std::string text, int root, const OnWait& on_wait) override {
    const auto round = exchange(rank_ == root ? bytes_of(text) : std::vector<std::byte>{}, on_wait);
    if (rank_ == root) return text;
    const auto& bytes = round->parts[at(root)].bytes;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  [[nodiscard]] std::vector<std::byte> gather(std::span<const std::byte> mine,
                                              std::vector<int>& counts, int root,
                                              const OnWait& on_wait) override {
    const auto round = exchange({mine.begin(), mine.end()}, on_wait);
    counts.clear();
    std::vector<std::byte> all;
    if (rank_ != root) return all;
    for (const ThreadGroup::Part& part : round->parts) {
      counts.push_back(static_cast<int>(part.bytes.size()));
      all.insert(all.end(), part.bytes.begin(), part.bytes.end());
    }
    return all;
  }
  [[nodiscard]] std::vector<std::int64_t> all_gather(std::int64_t mine,
                                                     const OnWait& on_wait) override {
    const auto round = exchange(bytes_of(std::array{mine}), on_wait);
    std::vector<std::int64_t> all;
    for (const ThreadGroup::Part& part : round->parts) all.push_back(word_of(part));
    return all;
  }
  [[nodiscard]] std::int64_t reduce(std::int64_t mine, Reduction how,
                                    const OnWait& on_wait) override {
    const std::vector<std::int64_t> all = all_gather(mine, on_wait);
    switch (how) {
      case Reduction::sum: return std::accumulate(all.begin(), all.end(), std::int64_t{0});
      case Reduction::maximum: return std::ranges::max(all);
      case Reduction::minimum: return std::ranges::min(all);
    }
    return 0;
  }

  void send(std::int64_t word, int to) override { group_->send(rank_, to, word); }
  [[nodiscard]] std::int64_t receive(int from) override { return group_->receive(from, rank_); }
  [[nodiscard]] std::shared_ptr<void> share(std::shared_ptr<void> of_first,
                                            const OnWait& on_wait) override {
    return group_->exchange(rank_, {{}, std::move(of_first)}, on_wait)->parts.front().object;
  }

private:
  [[nodiscard]] std::shared_ptr<const ThreadGroup::Round> exchange(std::vector<std::byte> mine,
                                                                   const OnWait& on_wait) {
    return group_->exchange(rank_, {std::move(mine), {}}, on_wait);
  }

  std::shared_ptr<ThreadGroup> group_;
  int rank_;
  std::map<ThreadGroup::Key, std::int64_t> asked_;  ///< how often this member has, by name
};

}  // namespace

GroupBackend::Handle make_thread_backend(std::shared_ptr<ThreadGroup> group, int rank) {
  return std::make_unique<ThreadBackend>(std::move(group), rank);
}

}  // namespace longhaul::comm
