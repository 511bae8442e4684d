#include "prefill/service/line_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace longhaul::prefill {
namespace {

constexpr std::size_t kMostUnsent = std::size_t{1} << 22U;  // bytes of answers that no one takes
constexpr int kMostWaitingClients = 4096;

std::string address_text(const SocketAddress& address) {
  return address.path.empty() ? fmt::format("tcp:{}", address.port) : "unix:" + address.path;
}

[[noreturn]] void fail_at(const SocketAddress& address, const char* what) {
  const std::string why = std::strerror(errno);
  throw Error{fmt::format("{}: {} ({}). Name another address, or start what listens there.",
                          address_text(address), what, why)};
}

/// Either kind, as the system takes it.
struct SystemAddress {
  sockaddr_un unix_path{};
  sockaddr_in loopback{};
  bool is_unix = false;

  explicit SystemAddress(const SocketAddress& address) : is_unix{!address.path.empty()} {
    unix_path.sun_family = AF_UNIX;
    address.path.copy(unix_path.sun_path, sizeof(unix_path.sun_path) - 1);
    loopback.sin_family = AF_INET;
    loopback.sin_port = htons(address.port);
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  [[nodiscard]] const sockaddr* get() const {
    return is_unix ? reinterpret_cast<const sockaddr*>(&unix_path)
                   : reinterpret_cast<const sockaddr*>(&loopback);
  }
  [[nodiscard]] socklen_t size() const { return is_unix ? sizeof(unix_path) : sizeof(loopback); }
};

SocketHandle stream_socket(const SocketAddress& address) {
  const int domain = address.path.empty() ? AF_INET : AF_UNIX;
  return SocketHandle{::socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0)};
}

void make_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// A socket's file whose server was killed.
bool is_left_over(const SocketAddress& address) {
  if (address.path.empty()) return false;
  const SocketHandle probe = stream_socket(address);
  const SystemAddress system{address};
  return ::connect(probe.get(), system.get(), system.size()) != 0 && errno == ECONNREFUSED;
}

}  // namespace

SocketAddress socket_address(const char* option, const std::string& text) {
  SocketAddress address;
  const std::string_view rest = std::string_view{text}.substr(std::min<std::size_t>(
      text.size(), text.find(':') == std::string::npos ? text.size() : text.find(':') + 1));
  if (text.starts_with("unix:")) {
    constexpr std::size_t kMost = sizeof(sockaddr_un{}.sun_path) - 1;
    if (rest.empty() || rest.size() > kMost)
      fail("{}: \"{}\" is no path of 1 to {} bytes. Give a shorter one.", option, rest, kMost);
    address.path = rest;
    return address;
  }
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), address.port);
  if (!text.starts_with("tcp:") || problem != std::errc{} || end != rest.data() + rest.size())
    fail("{}: \"{}\" is no address. Write unix:PATH, or tcp:PORT of this machine.", option, text);
  return address;
}

SocketHandle::~SocketHandle() {
  if (fd_ >= 0) ::close(fd_);
}

SocketHandle& SocketHandle::operator=(SocketHandle&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

int SocketHandle::release() { return std::exchange(fd_, -1); }

LineConnection::LineConnection(SocketHandle socket, std::size_t longest)
    : socket_{std::move(socket)}, longest_{longest} {
  make_nonblocking(socket_.get());
}

void LineConnection::take(std::string_view bytes, std::vector<Line>& lines) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    const bool is_ended = end != std::string_view::npos;
    if (!is_skipping_) {
      if (partial_.size() + part.size() > longest_) {
        lines.push_back({Line::Kind::too_long, {}});
        is_skipping_ = true;
        partial_.clear();
      } else {
        partial_ += part;
        if (is_ended) lines.push_back({Line::Kind::whole, std::exchange(partial_, {})});
      }
    }
    if (!is_ended) return;
    is_skipping_ = false;
    bytes.remove_prefix(end + 1);
  }
}

std::vector<LineConnection::Line> LineConnection::receive() {
  std::vector<Line> lines;
  std::array<char, 65536> bytes;
  while (!is_over_) {
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count > 0) {
      take({bytes.data(), static_cast<std::size_t>(count)}, lines);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    is_over_ = true;
    if (!partial_.empty()) lines.push_back({Line::Kind::half, std::exchange(partial_, {})});
  }
  return lines;
}

void LineConnection::send(std::string_view text) {
  unsent_ += text;
  std::size_t sent = 0;
  while (!is_over_ && sent < unsent_.size()) {
    const ssize_t count =
        ::send(socket_.get(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK) is_over_ = true;
    if (count <= 0) break;
    sent += static_cast<std::size_t>(count);
  }
  unsent_.erase(0, sent);
  if (unsent_.size() > kMostUnsent) is_over_ = true;
}

LineServer::LineServer(const SocketAddress& address, std::size_t longest)
    : address_{address},
      longest_{longest},
      listener_{stream_socket(address)},
      epoll_{::epoll_create1(EPOLL_CLOEXEC)},
      spare_{::open("/dev/null", O_RDONLY | O_CLOEXEC)} {
  if (is_left_over(address_)) ::unlink(address_.path.c_str());
  const SystemAddress system{address_};
  const int one = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (::bind(listener_.get(), system.get(), system.size()) != 0)
    fail_at(address_, "no one can listen there");
  if (::listen(listener_.get(), kMostWaitingClients) != 0) fail_at(address_, "it does not listen");
  make_nonblocking(listener_.get());
  if (address_.path.empty()) {
    sockaddr_in bound{};
    socklen_t size = sizeof(bound);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    address_.port = ntohs(bound.sin_port);
  }
}

LineServer::~LineServer() {
  if (!address_.path.empty()) ::unlink(address_.path.c_str());
}

void LineServer::accept_all() {
  while (true) {
    SocketHandle socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!socket.is_open() && (errno == EMFILE || errno == ENFILE) && spare_.is_open()) {
      // No descriptor is left: one is kept to tell the client so by closing its connection.
      spare_ = SocketHandle{};
      socket = SocketHandle{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      socket = SocketHandle{};
      spare_ = SocketHandle{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
      continue;
    }
    if (!socket.is_open()) return;
    epoll_event wanted{};
    wanted.events = EPOLLIN | EPOLLRDHUP;
    wanted.data.u64 = static_cast<std::uint64_t>(next_client_);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &wanted);
    clients_.emplace(next_client_++, LineConnection{std::move(socket), longest_});
  }
}

std::vector<LineServer::Event> LineServer::poll() {
  accept_all();
  std::vector<Event> events;
  std::array<epoll_event, 256> ready;
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  std::vector<std::int64_t> over;
  for (int i = 0; i < count; ++i) {
    const auto client = static_cast<std::int64_t>(ready[static_cast<std::size_t>(i)].data.u64);
    LineConnection& connection = clients_.at(client);
    for (LineConnection::Line& line : connection.receive())
      events.push_back({client, false, std::move(line)});
  }
  for (auto& [client, connection] : clients_) {
    if (connection.has_unsent()) connection.send({});
    if (connection.is_over()) over.push_back(client);
  }
  for (const std::int64_t client : over) {
    events.push_back({.client = client, .is_gone = true});
    clients_.erase(client);
  }
  return events;
}

void LineServer::send(std::int64_t client, std::string_view text) {
  if (const auto found = clients_.find(client); found != clients_.end()) found->second.send(text);
}

void LineServer::flush(Duration longest) {
  const auto waits = [](const auto& each) {
    return each.second.has_unsent() && !each.second.is_over();
  };
  for (const TimePoint until = now() + longest; std::ranges::any_of(clients_, waits);) {
    for (auto& [number, client] : clients_)
      if (client.has_unsent()) client.send({});
    if (now() >= until) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

LineConnection connect_to(const SocketAddress& address, std::size_t longest) {
  SocketHandle socket = stream_socket(address);
  const SystemAddress system{address};
  if (::connect(socket.get(), system.get(), system.size()) != 0)
    fail_at(address, "no one listens there");
  return LineConnection{std::move(socket), longest};
}

void wait_for_line(const LineConnection& connection, Duration longest) {
  pollfd wanted{connection.fd(), POLLIN, 0};
  const timespec time{longest.count() / 1'000'000'000, longest.count() % 1'000'000'000};
  ::ppoll(&wanted, 1, &time, nullptr);
}

}  // namespace longhaul::prefill
