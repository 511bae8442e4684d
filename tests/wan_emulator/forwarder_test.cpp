// Datagrams through real namespaces and TUN devices. Needs root; skips with a reason without it.
#include "wan_emulator/forwarder.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "wan_emulator/flows.hpp"

namespace longhaul::wan_emulator {
namespace {

constexpr std::uint16_t kPort = 4000;

sockaddr_in address_at(int site) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  check_call(::inet_pton(AF_INET, address_of(site).c_str(), &address.sin_addr), "inet_pton");
  return address;
}

/// A datagram socket at a site.
FileDescriptor socket_at(const WideArea& wan, int site) {
  FileDescriptor socket;
  wan.site(site).inside([&] {
    socket = FileDescriptor{check_call(::socket(AF_INET, SOCK_DGRAM, 0), "socket")};
    const sockaddr_in address = address_at(site);
    check_call(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
               "bind");
    const int large = 8 << 20;
    check_call(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large),
               "setsockopt");
  });
  return socket;
}

void send_number(const FileDescriptor& from, int to, std::int64_t number) {
  const sockaddr_in address = address_at(to);
  check_call(::sendto(from.get(), &number, sizeof number, 0,
                      reinterpret_cast<const sockaddr*>(&address), sizeof address),
             "sendto");
}

/// The next number; nothing where none comes for `patience`.
std::optional<std::int64_t> receive_number(const FileDescriptor& socket, Duration patience) {
  pollfd waiting{socket.get(), POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(patience / 1ms)) <= 0) return std::nullopt;
  std::int64_t number = 0;
  check_call(::recv(socket.get(), &number, sizeof number, 0), "recv");
  return number;
}

class ForwarderTest : public ::testing::Test {
protected:
  void SetUp() override {
    if (const auto reason = why_impossible()) GTEST_SKIP() << *reason;
  }
  static ForwarderSettings between(int sites, Duration latency) {
    ForwarderSettings settings;
    settings.wan.sites = sites;
    settings.wan.all.latency = latency;
    return settings;
  }
};

TEST_F(ForwarderTest, NeverDeliversEarly) {
  const WideArea wan{between(2, 30ms)};
  const FileDescriptor a = socket_at(wan, 0), b = socket_at(wan, 1);
  for (int i = 0; i < 5; ++i) {
    const auto sent = std::chrono::steady_clock::now();
    send_number(a, 1, i);
    EXPECT_EQ(receive_number(b, 10s), i);
    EXPECT_GE(std::chrono::steady_clock::now() - sent, 30ms);
    send_number(b, 0, 100 + i);
    EXPECT_EQ(receive_number(a, 10s), 100 + i);
    EXPECT_GE(std::chrono::steady_clock::now() - sent, 60ms);
  }
  EXPECT_EQ(wan.forwarder().problem(), "");
}

TEST_F(ForwarderTest, KeepsTheOrderAndLosesNothing) {
  ForwarderSettings settings = between(3, 5ms);
  settings.wan.node = 200_Mbps;
  const WideArea wan{settings};
  const FileDescriptor a = socket_at(wan, 0), b = socket_at(wan, 1), c = socket_at(wan, 2);
  constexpr std::int64_t kNumbers = 2000;
  for (std::int64_t i = 0; i < kNumbers; ++i) {
    send_number(a, 1, i);
    send_number(a, 2, i);
  }
  for (const FileDescriptor* socket : {&b, &c})
    for (std::int64_t i = 0; i < kNumbers; ++i) ASSERT_EQ(receive_number(*socket, 10s), i);
  const ForwarderReport report = wan.report();
  EXPECT_EQ(report.paths[1].delivered, kNumbers);
  EXPECT_EQ(report.paths[2].delivered, kNumbers);
  EXPECT_EQ(report.paths[1].dropped + report.refused, 0);
}

TEST_F(ForwarderTest, IsNeverFasterThanItsRate) {
  ForwarderSettings settings = between(2, 1ms);
  settings.wan.all.rate = Bandwidth{288e3};  // 36 bytes (8 of them ours): 1 ms
  const WideArea wan{settings};
  const FileDescriptor a = socket_at(wan, 0), b = socket_at(wan, 1);
  const auto sent = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) send_number(a, 1, i);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(receive_number(b, 10s), i);
  EXPECT_GE(std::chrono::steady_clock::now() - sent, 101ms);
}

TEST_F(ForwarderTest, LosesTheSamePacketsWithOneSeed) {
  std::vector<std::int64_t> first;
  for (int run = 0; run < 2; ++run) {
    ForwarderSettings settings = between(2, 1ms);
    settings.wan.all.loss = 0.2;
    settings.wan.seed = 5;
    const WideArea wan{settings};
    const FileDescriptor a = socket_at(wan, 0), b = socket_at(wan, 1);
    constexpr int kNumbers = 500;
    for (int i = 0; i < kNumbers; ++i) send_number(a, 1, i);
    std::vector<std::int64_t> here;
    const auto left = [&] {
      const ForwarderReport report = wan.report();
      return report.paths[1].delivered + report.paths[1].lost < kNumbers;
    };
    while (left()) std::this_thread::sleep_for(1ms);
    const std::int64_t expected = wan.report().paths[1].delivered;
    while (std::ssize(here) < expected) {
      const auto number = receive_number(b, 10s);
      ASSERT_TRUE(number);
      here.push_back(*number);
    }
    EXPECT_GT(wan.report().paths[1].lost, 50);
    if (run == 0) first = here;
    EXPECT_EQ(here, first);
  }
}

TEST_F(ForwarderTest, CarriesTcpWholeAndLongSegments) {
  ForwarderSettings settings = between(2, 2ms);
  settings.wan.node = 200_Mbps;
  const WideArea wan{settings};
  FlowSettings flows;
  flows.connections = 2;
  flows.window = 256_KiB;
  flows.warmup = flows.measured = 300ms;
  const FlowResult result = measure_flows(wan.site(0), wan.site(1), flows);
  EXPECT_GT(result.rate().bits_per_second(), 0);
  EXPECT_LE(result.rate().bits_per_second(), 200e6 * 1.3) << "but for what waited when it began";
  ASSERT_EQ(result.flows.size(), 2U);
  EXPECT_GE(result.flows[0].least_rtt, Duration{4ms});
  EXPECT_EQ(result.flows[0].congestion_control, "cubic");
}

TEST_F(ForwarderTest, NamesTheCongestionControlsThatAreThere) {
  const WideArea wan{between(2, 1ms)};
  FlowSettings flows;
  flows.congestion_control = "nonesuch";
  try {
    (void)measure_flows(wan.site(0), wan.site(1), flows);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_NE(std::string{error.what()}.find("reno"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace longhaul::wan_emulator
