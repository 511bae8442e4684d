#pragma once

#include <csignal>
#include <optional>
#include <set>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "integration/runs/bench_pipeline_fixture.hpp"
#include "prefill/service/line_socket.hpp"
#include "prefill/service/service_lines.hpp"

namespace longhaul::testing {

/// Four ranks train, rank 4 is the controller, rank 5 decodes. An iteration takes some 60 ms.
inline constexpr const char* kServing = R"([scenario]
name = "serving"
[costs]
forward = "4ms"
backward = "8ms"
message = "1MiB"
activation = "1MiB"
weights = "1MiB"
[parallel]
stages = 2
replicas = 2
microbatches = 2
gradient_sync = "none"
[[datacenter]]
name = "west"
stages = [0, 1]
[[node]]
datacenter = "west"
internal = "4Gbps"
[prefill]
model = {layers = 6, hidden = 64, intermediate = 128, heads = 4, kv_heads = 4, head_size = 16, vocabulary = 100}
achieved_flops = "0.006TFLOP/s"
floor = "1ms"
stages = 2
hop = "100us"
guard = "1ms"
)";
/// Keys and values go to rank 5.
inline constexpr const char* kDecode =
    "decode = {rate = \"15Mbps\", latency = \"500us\", slice = \"4KiB\", first_token = \"2ms\"}\n";

/// A client that keeps what it was told, by id of its requests.
class Client {
public:
  /// Waits for a server.
  explicit Client(const std::filesystem::path& socket) : connection_{connect(socket)} {}

  void ask(std::int64_t id, std::int64_t tokens = 9) {
    connection_.send(fmt::format("{{\"id\": {}, \"input_length\": {}}}\n", id, tokens));
    asked_.insert(std::to_string(id));
  }
  /// Lines that are no requests, each of which is answered.
  void send_bad_lines(int count) {
    for (int i = 0; i < count; ++i) connection_.send("{}\n");
  }
  /// Listens until `enough`, or the server has gone, or so long.
  template <typename Enough>
  void listen(Enough&& enough, Duration longest = std::chrono::seconds{60}) {
    const TimePoint until = now() + longest;
    while (!enough() && !connection_.is_over() && now() < until) {
      if (connection_.has_unsent()) connection_.send({});
      prefill::wait_for_line(connection_, std::chrono::milliseconds{50});
      for (const auto& line : connection_.receive()) {
        const auto said = prefill::parse_answer_line(line.text);
        if (said.is_final()) last_[said.id].push_back(said);
        placed_ += said.answer == "placed";
      }
    }
  }
  void listen_to_the_end() {
    listen([] { return false; });
  }
  /// Of a word, by last answers.
  [[nodiscard]] int count(const std::string& word) const {
    int count = 0;
    for (const auto& [id, answers] : last_) count += answers.back().answer == word;
    return count;
  }
  /// With that reason.
  [[nodiscard]] int count_failed(const std::string& reason) const {
    int count = 0;
    for (const auto& [id, answers] : last_)
      count += answers.back().answer == "failed" && answers.back().reason == reason;
    return count;
  }
  [[nodiscard]] int placed() const { return placed_; }
  [[nodiscard]] bool is_over() const { return connection_.is_over(); }
  [[nodiscard]] std::optional<prefill::AnswerLine> answer_to(const std::string& id) const {
    const auto found = last_.find(id);
    return found == last_.end() ? std::nullopt : std::optional{found->second.front()};
  }
  [[nodiscard]] const std::set<std::string>& asked() const { return asked_; }
  void expect_no_second_answer() const {
    for (const auto& [id, answers] : last_) EXPECT_EQ(answers.size(), 1U) << "request " << id;
  }
  void expect_one_answer_each() const {
    expect_no_second_answer();
    for (const std::string& id : asked_) EXPECT_TRUE(last_.contains(id)) << "request " << id;
  }

private:
  [[nodiscard]] static prefill::LineConnection connect(const std::filesystem::path& socket) {
    for (int i = 0;; ++i) {
      try {
        return prefill::connect_to({.path = socket.string()}, prefill::kLongestServiceLine);
      } catch (const Error&) {
        if (i == 1200) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
      }
    }
  }

  prefill::LineConnection connection_;
  std::set<std::string> asked_;
  std::map<std::string, std::vector<prefill::AnswerLine>> last_;
  int placed_ = 0;
};

/// Runs bench_prefill as a user does.
class PrefillRuns : public BenchPipeline {
protected:
  PrefillRuns() {
    program_ = {LONGHAUL_BENCH_PREFILL, scenario().string(), "--schedule", "1f1b"};
    write_scenario(kServing);
    std::ofstream requests{requests_file()};
    for (int i = 0; i < 8; ++i)
      requests << "{\"timestamp\": " << 10 * i << ", \"input_length\": " << 5 + 10 * i << "}\n";
  }
  [[nodiscard]] std::string requests_file() const {
    return (scratch_.path() / "requests.jsonl").string();
  }
  [[nodiscard]] std::filesystem::path socket() const { return scratch_.path() / "socket"; }

  void start_prefill(int processes, std::vector<std::string> options) {
    for (const char* const word : {"--out", "--deadline"}) {
      options.emplace_back(word);
      options.push_back(options.back() == "--out" ? out() : "1s");
    }
    if (processes == 0) options.insert(options.end(), {"--ranks-per-process", "6"});
    start(processes, options);
  }
  void start_planned(int processes, std::vector<std::string> options) {
    options.insert(options.end(), {"--requests", requests_file(), "--backlog", "4"});
    start_prefill(processes, options);
  }
  /// A pair of stretches takes 1.6 s.
  void start_listening(int processes, std::vector<std::string> options = {}) {
    write_scenario(std::string{kServing} + kDecode);
    options.insert(options.end(), {"--controller", "live", "--listen", "unix:" + socket().string(),
                                   "--pairs", "20", "--warmup", "0", "--set", "run.time_scale=10"});
    start_prefill(processes, options);
  }
  /// So many stretches of a run that failed are in its directory, and can be read.
  void expect_stretches(std::size_t at_least) const {
    EXPECT_GE(trace::finished_iterations(out()).size(), at_least);
    const std::filesystem::path merged = scratch_.path() / "merged.h5";
    trace::write_trace(merged, trace::merge_run(out()));
    EXPECT_THAT(trace::validate_trace(merged), ::testing::IsEmpty());
    std::filesystem::remove(merged);
  }
  [[nodiscard]] std::string answer_of_tool(const std::string& words) {
    const std::filesystem::path said = scratch_.path() / "said";
    const int code = std::system(
        (std::string{LONGHAUL_BINARY} + " " + words + " >" + said.string() + " 2>&1").c_str());
    return fmt::format("{}: {}", WEXITSTATUS(code), file_text(said));
  }
};

}  // namespace longhaul::testing
