#include "prefill/service/socket_arrivals.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace longhaul::prefill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A server in this process, and a client of it.
class SocketArrivalsTest : public ::testing::TestWithParam<const char*> {
protected:
  SocketArrivalsTest() : server_{address(), {"big", "small"}, {{0, 0}, {0, 1}, {1, 1}}} {}
  [[nodiscard]] static SocketAddress address() {
    const std::string kind = GetParam();
    if (kind == "tcp") return {};
    return {.path = fmt::format("{}longhaul-{}.sock", ::testing::TempDir(), ::getpid())};
  }
  [[nodiscard]] LineConnection client() const {
    return connect_to(server_.address(), kLongestServiceLine);
  }
  /// What comes of a look at the sockets, until something does.
  void look() {
    for (int i = 0; i < 2000; ++i) {
      const std::size_t before = arrived_.size() + cancelled_.size();
      server_.collect(7ms, arrived_, cancelled_);
      if (arrived_.size() + cancelled_.size() > before) return;
      ::usleep(1000);
    }
  }
  /// The next line that the client gets, while the server looks around.
  [[nodiscard]] std::string heard(LineConnection& by) {
    for (int i = 0; i < 2000; ++i) {
      const auto lines = by.receive();
      for (const auto& line : lines) heard_.push_back(line.text);
      if (!heard_.empty()) {
        const std::string first = heard_.front();
        heard_.erase(heard_.begin());
        return first;
      }
      server_.collect(7ms, arrived_, cancelled_);
      ::usleep(1000);
    }
    return "nothing";
  }
  SocketArrivals server_;
  std::vector<Request> arrived_;
  std::vector<std::int64_t> cancelled_;
  std::vector<std::string> heard_;
};

TEST_P(SocketArrivalsTest, TakesRequestsAndTellsWhatBecameOfThem) {
  LineConnection one = client();
  one.send("{\"id\": 41, \"input_length\": 512}\n{\"id\": \"a\", \"input_le");
  look();
  ASSERT_THAT(arrived_, ElementsAre(Request{0, 7ms, 512}));
  one.send("ngth\": 9, \"model\": \"small\"}\n");
  look();
  ASSERT_EQ(arrived_.size(), 2U);
  EXPECT_EQ(arrived_[1], (Request{1, 7ms, 9, "small"}));
  server_.tell({NewsKind::placed, 0, 7ms, 1, 10ms, 15ms});
  EXPECT_EQ(heard(one),
            "{\"id\": 41, \"answer\": \"placed\", \"pipeline\": 1, \"start_ns\": 10000000, "
            "\"expected_ttft_ns\": 8000000}");
  server_.tell({NewsKind::done, 0, 7ms, 1, 10ms, 16ms});
  EXPECT_EQ(heard(one),
            "{\"id\": 41, \"answer\": \"done\", \"pipeline\": 1, \"ttft_ns\": 9000000}");
  server_.tell({.kind = NewsKind::refused, .request = 1, .reason = RefusalReason::slo});
  EXPECT_EQ(heard(one), "{\"id\": \"a\", \"answer\": \"refused\", \"reason\": \"slo\"}");
  server_.tell({NewsKind::done, 0, 7ms, 1, 10ms, 16ms});
  server_.tell({.kind = NewsKind::cancelled, .request = 1});
  EXPECT_THAT(one.receive(), ::testing::IsEmpty()) << "a last answer is the last";
}

TEST_P(SocketArrivalsTest, AnswersWhatIsNoRequestAndGoesOn) {
  LineConnection one = client();
  one.send("no json\n{\"id\": 1}\n{\"id\": 1, \"input_length\": 0}\n{\"cancel\": 9}\n");
  one.send("{\"id\": 1, \"input_length\": 5, \"model\": \"other\"}\n{\"drain\": 7}\n");
  one.send(std::string(kLongestServiceLine + 1, 'x') + "\n");
  for (const char* const why :
       {"no JSON object", "\\\"input_length\\\"", "\\\"input_length\\\"", "no request that waits",
        "no [[prefill]]", "no such pipeline", "too long"})
    EXPECT_THAT(heard(one), HasSubstr(why));
  one.send("{\"id\": 1, \"input_length\": 5}\n{\"id\": 1, \"input_length\": 6}\n");
  EXPECT_THAT(heard(one), HasSubstr("has it already"));
  EXPECT_THAT(arrived_, ElementsAre(Request{0, 7ms, 5}));
}

TEST_P(SocketArrivalsTest, AClientThatGoesCancelsWhatIsOpen) {
  {
    LineConnection one = client(), other = client();
    one.send("{\"id\": 1, \"input_length\": 5}\n{\"id\": 2, \"input_length\": 6}\n{\"id\": 3");
    other.send("{\"id\": 1, \"input_length\": 7}\n");
    while (arrived_.size() < 3) look();
    const LineConnection goes = std::move(one);
    const LineConnection stays = std::move(other);
    server_.tell({.kind = NewsKind::refused, .request = arrived_[0].id});
  }
  while (cancelled_.size() < 2) look();
  EXPECT_EQ(cancelled_.size(), 2U);
  EXPECT_EQ(arrived_.size(), 3U) << "half a line is no request";
}

TEST_P(SocketArrivalsTest, CancelsAndDrainsWhereAClientSaysSo) {
  LineConnection one = client();
  one.send("{\"id\": 1, \"input_length\": 5}\n{\"drain\": 1}\n{\"cancel\": 1}\n");
  while (cancelled_.empty()) look();
  EXPECT_THAT(cancelled_, ElementsAre(0));
  EXPECT_TRUE(server_.is_drained(0, 1));
  EXPECT_TRUE(server_.is_drained(1, 1));
  EXPECT_FALSE(server_.is_drained(0, 0));
  one.send("{\"resume\": 1}\n{\"id\": 2, \"input_length\": 5}\n");
  look();
  EXPECT_FALSE(server_.is_drained(0, 1));
  EXPECT_FALSE(server_.is_drained(1, 1));
  server_.fail_open();
  EXPECT_EQ(heard(one), "{\"id\": 1, \"answer\": \"failed\"}");
  EXPECT_EQ(heard(one), "{\"id\": 2, \"answer\": \"failed\"}");
}

// Pipelines of two models have one number.
TEST_P(SocketArrivalsTest, DrainsThePipelineOfTheModelThatIsNamed) {
  LineConnection one = client();
  one.send("{\"drain\": 1, \"model\": \"small\"}\n{\"drain\": 0, \"model\": \"small\"}\n");
  EXPECT_THAT(heard(one), HasSubstr("no such pipeline"));
  EXPECT_TRUE(server_.is_drained(1, 1));
  EXPECT_FALSE(server_.is_drained(0, 1));
  EXPECT_FALSE(server_.is_drained(0, 0));
  one.send("{\"drain\": 1, \"model\": \"other\"}\n{\"drain\": 1, \"model\": 4}\n");
  EXPECT_THAT(heard(one), HasSubstr("no such pipeline"));
  EXPECT_THAT(heard(one), HasSubstr("name a [[prefill]]"));
  EXPECT_FALSE(server_.is_drained(0, 1));
}

TEST_P(SocketArrivalsTest, HandsOverWhatNoOneHasLookedAt) {
  LineConnection one = client();
  one.send("{\"id\": 1, \"input_length\": 5}\n");
  look();
  one.send("{\"id\": 2, \"input_length\": 6}\n{\"cancel\": 2}\n");
  std::vector<Request> rest;
  for (int i = 0; i < 2000 && rest.empty(); ++i, ::usleep(1000)) rest = server_.rest();
  EXPECT_THAT(rest, ElementsAre(Request{1, 7ms, 6}));
  EXPECT_THAT(server_.offered(), ElementsAre(0, 1));
}

TEST(SocketArrivals, FailsWhatIsOpenAsItGoes) {
  std::optional<SocketArrivals> server{std::in_place, SocketAddress{}, std::vector<std::string>{},
                                       std::set<SocketArrivals::PipelineName>{}};
  LineConnection one = connect_to(server->address(), kLongestServiceLine);
  one.send("{\"id\": 1, \"input_length\": 5}\n");
  std::vector<Request> arrived;
  std::vector<std::int64_t> cancelled;
  for (int i = 0; i < 2000 && arrived.empty(); ++i, ::usleep(1000))
    server->collect(7ms, arrived, cancelled);
  server.reset();
  wait_for_line(one, 2s);
  const auto lines = one.receive();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines.front().text, "{\"id\": 1, \"answer\": \"failed\"}");
}

/// 10,000, or as many as this machine lets a process have, two open files each.
[[nodiscard]] int most_clients() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 200;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 200;
  return static_cast<int>(std::min<rlim_t>(10'000, (limit.rlim_max - 100) / 2));
}

TEST_P(SocketArrivalsTest, HoldsTenThousandClientsAndSlowOnes) {
  const int most = most_clients();
  std::vector<LineConnection> clients;
  for (int i = 0; i < most; ++i) {
    clients.push_back(client());
    clients.back().send(fmt::format("{{\"id\": {}, \"input_le", i));
    if (i % 100 == 99) server_.collect(7ms, arrived_, cancelled_);
  }
  EXPECT_TRUE(arrived_.empty());
  for (LineConnection& each : clients) each.send("ngth\": 5}\n");
  while (arrived_.size() < clients.size()) look();
  EXPECT_EQ(arrived_.size(), clients.size());
}

INSTANTIATE_TEST_SUITE_P(Both, SocketArrivalsTest, ::testing::Values("unix", "tcp"));

TEST(SocketAddress, IsAPathOrAPort) {
  EXPECT_EQ(socket_address("--to", "unix:/tmp/a:b").path, "/tmp/a:b");
  EXPECT_EQ(socket_address("--to", "tcp:4711").port, 4711);
  for (const char* const bad : {"", "unix:", "tcp:", "tcp:70000", "tcp:1x", "udp:1", "/tmp/a"})
    EXPECT_THAT([&] { (void)socket_address("--to", bad); },
                ::testing::ThrowsMessage<Error>(HasSubstr("--to:")))
        << bad;
}

TEST(LineServer, TakesOverWhereAServerWasKilled) {
  const SocketAddress address{
      .path = fmt::format("{}longhaul-left-{}.sock", ::testing::TempDir(), ::getpid())};
  EXPECT_THAT([&] { (void)connect_to(address, 10); },
              ::testing::ThrowsMessage<Error>(HasSubstr("no one listens there")));
  {
    const LineServer first{address, 10};
    EXPECT_THAT([&] { const LineServer second(address, 10); },
                ::testing::ThrowsMessage<Error>(HasSubstr("no one can listen there")));
    const std::string copy = address.path + ".left";
    ASSERT_EQ(::link(address.path.c_str(), copy.c_str()), 0);
  }
  ASSERT_EQ(::rename((address.path + ".left").c_str(), address.path.c_str()), 0);
  const LineServer next{address, 10};
  EXPECT_NO_THROW((void)connect_to(address, 10));
}

}  // namespace
}  // namespace longhaul::prefill
