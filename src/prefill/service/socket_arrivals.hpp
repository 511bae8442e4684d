#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "prefill/live/arrivals.hpp"
#include "prefill/service/line_socket.hpp"
#include "prefill/service/service_lines.hpp"

namespace longhaul::prefill {

/// Requests that clients send over a socket while a run goes on, and what they are told: a line
/// when a request has a place, and one when it is refused, done, cancelled or failed. A request
/// arrives when its line is read. A client that goes cancels all that has not begun. What is no
/// request is answered with an error, and the connection goes on.
class SocketArrivals final : public Arrivals {
public:
  /// A pipeline: place of its model, and its number among that model's.
  using PipelineName = std::pair<std::size_t, std::int32_t>;
  /// `models`: names that a request may give; `pipelines`: those that may be drained.
  SocketArrivals(const SocketAddress& address, std::vector<std::string> models,
                 std::set<PipelineName> pipelines);

  ~SocketArrivals() override { fail_open(); }

  void collect(Duration now, std::vector<Request>& arrived,
               std::vector<std::int64_t>& cancelled) override;
  /// What clients have sent and nothing has looked at.
  [[nodiscard]] std::vector<Request> rest() override;
  [[nodiscard]] std::vector<std::int64_t> offered() const override;
  [[nodiscard]] Duration next_look(Duration now) const override;
  void tell(const RequestNews& news) override;
  [[nodiscard]] bool is_drained(std::size_t model, std::int32_t pipeline) const override {
    return drained_.contains({model, pipeline});
  }
  /// At the run's end: what has no last answer yet has failed. Waits a little for clients to take
  /// what they were told.
  void fail_open();
  [[nodiscard]] const SocketAddress& address() const { return server_.address(); }

private:
  struct Asked {
    std::int64_t client = 0;
    std::string id;
  };
  void take(const LineServer::Event& event, Duration now, std::vector<Request>& arrived,
            std::vector<std::int64_t>& cancelled);
  void ask(std::int64_t client, const AskLine& line, Duration now, std::vector<Request>& arrived);
  void cancel(std::int64_t client, const CancelLine& line, std::vector<std::int64_t>& cancelled);
  void drain(std::int64_t client, const DrainLine& line);

  LineServer server_;
  std::vector<std::string> models_;
  std::set<PipelineName> pipelines_, drained_;
  std::map<std::int64_t, Asked> open_;                                     ///< by request
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> requests_;  ///< by client and id
  std::int64_t next_ = 0;
  Duration looked_{};  ///< the last time
};

}  // namespace longhaul::prefill
