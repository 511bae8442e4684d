#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace longhaul::prefill {

/// Where a server listens: "unix:PATH", or "tcp:PORT" of the loopback interface (0: any free one).
struct SocketAddress {
  std::string path{};  ///< empty: a port
  std::uint16_t port = 0;
};
/// Throws Error that names `option`.
[[nodiscard]] SocketAddress socket_address(const char* option, const std::string& text);

/// Owns a file descriptor.
class SocketHandle {
public:
  explicit SocketHandle(int fd = -1) : fd_{fd} {}
  ~SocketHandle();
  SocketHandle(SocketHandle&& other) noexcept : fd_{other.release()} {}
  SocketHandle& operator=(SocketHandle&& other) noexcept;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  int release();

private:
  int fd_;
};

/// A connection that takes and gives lines, and waits for neither.
class LineConnection {
public:
  /// What came: a line without its end, one that was too long, or an end in the middle of a line.
  struct Line {
    enum class Kind : std::uint8_t { whole, too_long, half };
    Kind kind = Kind::whole;
    std::string text{};
  };
  explicit LineConnection(SocketHandle socket, std::size_t longest);

  /// All lines that have come; what is too long is left out up to its end.
  [[nodiscard]] std::vector<Line> receive();
  /// As much as goes now; the rest with the next call.
  void send(std::string_view text);
  /// The other side has closed it, it broke, or the other side takes no answers.
  [[nodiscard]] bool is_over() const { return is_over_; }
  [[nodiscard]] bool has_unsent() const { return !unsent_.empty(); }
  [[nodiscard]] int fd() const { return socket_.get(); }

private:
  void take(std::string_view bytes, std::vector<Line>& lines);

  SocketHandle socket_;
  std::size_t longest_;
  std::string partial_{};
  bool is_skipping_ = false;  ///< the rest of a line that was too long
  std::string unsent_{};
  bool is_over_ = false;
};

/// Listens, and looks at all connections when it is asked to.
class LineServer {
public:
  /// Throws Error where it cannot listen there; of a path that no server listens to any more the
  /// file is replaced.
  LineServer(const SocketAddress& address, std::size_t longest);
  ~LineServer();
  LineServer(const LineServer&) = delete;
  LineServer& operator=(const LineServer&) = delete;

  struct Event {
    std::int64_t client = 0;
    bool is_gone = false;  ///< after its last line
    LineConnection::Line line{};
  };
  /// What has come since the last call, by client, without waiting.
  [[nodiscard]] std::vector<Event> poll();
  /// To a client that has gone: nothing.
  void send(std::int64_t client, std::string_view text);
  /// Sends what clients have not taken yet, for so long at most.
  void flush(Duration longest);
  [[nodiscard]] const SocketAddress& address() const { return address_; }
  [[nodiscard]] std::size_t clients() const { return clients_.size(); }

private:
  void accept_all();

  SocketAddress address_;
  std::size_t longest_;
  SocketHandle listener_, epoll_, spare_;
  std::map<std::int64_t, LineConnection> clients_;
  std::int64_t next_client_ = 0;
};

/// A connection to a server. Throws Error where none listens there.
[[nodiscard]] LineConnection connect_to(const SocketAddress& address, std::size_t longest);
/// Waits until a line may have come, or so long.
void wait_for_line(const LineConnection& connection, Duration longest);

}  // namespace longhaul::prefill
