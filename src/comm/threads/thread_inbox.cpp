#include "comm/threads/thread_inbox.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace longhaul::comm {
namespace {

/// The first in `list` of that sender and tag.
auto find(auto& list, int from, int tag, auto of) {
  return std::ranges::find_if(
      list, [&](const auto& each) { return of(each).from == from && of(each).tag == tag; });
}

void require_room(std::size_t message, std::size_t buffer) {
  if (message <= buffer) return;
  throw Error{fmt::format("a message of {} bytes came where {} were expected (the ranks do not run "
                          "the same plan). Start the run again.",
                          message, buffer),
              ExitCode::run_failed};
}

void copy(std::span<const std::byte> data, std::span<std::byte> buffer) {
  if (!data.empty()) std::memcpy(buffer.data(), data.data(), data.size());
}

}  // namespace

void ThreadInbox::put(const Send& send) {
  std::unique_lock lock{mutex_};
  const auto at = find(expected_, send.from, send.tag, [](const Receive& r) { return r; });
  if (at == expected_.end()) {
    const bool keep = send.data.size() <= kKept;
    unexpected_.push_back({send, {}, keep});
    if (!keep) return;
    unexpected_.back().kept.assign(send.data.begin(), send.data.end());
    lock.unlock();
  } else {
    const Receive receive = *at;
    require_room(send.data.size(), receive.buffer.size());
    expected_.erase(at);
    ++copies_;
    lock.unlock();
    copy(send.data, receive.buffer);
    complete(receive.request, send.data.size());
    end_copy();
  }
  send.sender->complete(send.request, send.data.size());
}

bool ThreadInbox::expect(const Receive& receive) {
  std::unique_lock lock{mutex_};
  const auto at =
      find(unexpected_, receive.from, receive.tag, [](const Message& m) { return m.send; });
  if (at == unexpected_.end()) {
    expected_.push_back(receive);
    return false;
  }
  const Send& send = at->send;
  require_room(send.data.size(), receive.buffer.size());
  std::list<Message> taken;
  taken.splice(taken.end(), unexpected_, at);
  ++copies_;
  lock.unlock();
  copy(at->is_kept ? std::span<const std::byte>{at->kept} : send.data, receive.buffer);
  complete(receive.request, send.data.size());
  if (!at->is_kept) send.sender->complete(send.request, send.data.size());
  end_copy();
  return !at->is_kept;
}

void ThreadInbox::end_copy() {
  const std::scoped_lock lock{mutex_};
  --copies_;
  copied_.notify_all();
}

void ThreadInbox::complete(RequestId request, std::size_t size_bytes) {
  const std::scoped_lock lock{completions_mutex_};
  completions_.push_back({request, size_bytes});
  has_completions_ = true;
}

void ThreadInbox::take(std::vector<Completion>& done) {
  if (!has_completions_) return;
  const std::scoped_lock lock{completions_mutex_};
  done.insert(done.end(), completions_.begin(), completions_.end());
  completions_.clear();
  has_completions_ = false;
}

std::int64_t ThreadInbox::drop_unclaimed() {
  std::list<Message> dropped;
  {
    const std::scoped_lock lock{mutex_};
    dropped.swap(unexpected_);
  }
  for (const Message& message : dropped)
    if (!message.is_kept) message.send.sender->complete(message.send.request, 0);
  return std::ssize(dropped);
}

void ThreadInbox::forget_sends_of(int rank) {
  std::unique_lock lock{mutex_};
  copied_.wait(lock, [&] { return copies_ == 0; });
  std::erase_if(unexpected_, [&](const Message& message) {
    return message.send.from == rank && !message.is_kept;
  });
}

void ThreadInbox::forget_receives() {
  std::unique_lock lock{mutex_};
  copied_.wait(lock, [&] { return copies_ == 0; });
  expected_.clear();
}

}  // namespace longhaul::comm
