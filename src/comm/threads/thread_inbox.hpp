#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <span>
#include <vector>

#include "comm/transport.hpp"

namespace longhaul::comm {

/// Messages that have come and receives that wait, of one rank among threads: senders put messages
/// in, its own thread asks for them. A message is copied once, straight into the buffer of its
/// receive, by the second of the two; a small one that comes first is kept, so that its sender is
/// done with it. Messages of one sender and tag meet receives in order.
class ThreadInbox {
public:
  /// Messages of up to so many bytes never wait for their receive.
  static constexpr std::size_t kKept = 4096;

  struct Send {
    int from = 0;
    int tag = 0;
    std::span<const std::byte> data;
    RequestId request{};
    ThreadInbox* sender = nullptr;  ///< gets the completion
  };
  struct Receive {
    int from = 0;
    int tag = 0;
    std::span<std::byte> buffer;
    RequestId request{};
  };

  /// By the sender's thread. Throws Error where the message is longer than its receive's buffer.
  void put(const Send& send);
  /// By the rank's own thread; throws likewise. True if the sender has a completion by that, and
  /// no one has told it.
  [[nodiscard]] bool expect(const Receive& receive);

  /// By any thread.
  void complete(RequestId request, std::size_t size_bytes);
  /// Adds what has completed to `done`, in order.
  void take(std::vector<Completion>& done);
  [[nodiscard]] bool has_completions() const { return has_completions_; }
  /// Takes out the messages that have come and have no receive.
  [[nodiscard]] std::int64_t drop_unclaimed();

  /// Before buffers go: those that `rank` sends from, those that our own receives wait with.
  void forget_sends_of(int rank);
  void forget_receives();

private:
  struct Message {
    Send send;
    std::vector<std::byte> kept;
    bool is_kept = false;  ///< otherwise it still lies in the sender's buffer
  };
  void end_copy();

  std::mutex mutex_;  ///< of the lists; never held while bytes are copied between buffers
  std::list<Message> unexpected_;
  std::list<Receive> expected_;
  int copies_ = 0;  ///< going on
  std::condition_variable copied_;
  std::mutex completions_mutex_;
  std::vector<Completion> completions_;
  std::atomic<bool> has_completions_ = false;
};

}  // namespace longhaul::comm
