#include "prefill/service/socket_arrivals.hpp"

#include <algorithm>
#include <numeric>

#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

constexpr Duration kLookEvery{1'000'000};
/// For the last answers: a socket holds some 280 lines that its client has not read.
constexpr Duration kLongestFlush{200'000'000};

}  // namespace

SocketArrivals::SocketArrivals(const SocketAddress& address, std::vector<std::string> models,
                               std::set<PipelineName> pipelines)
    : server_{address, kLongestServiceLine},
      models_{std::move(models)},
      pipelines_{std::move(pipelines)} {}

void SocketArrivals::collect(Duration now, std::vector<Request>& arrived,
                             std::vector<std::int64_t>& cancelled) {
  looked_ = now;
  for (const LineServer::Event& event : server_.poll()) take(event, now, arrived, cancelled);
}

std::vector<Request> SocketArrivals::rest() {
  std::vector<Request> arrived;
  std::vector<std::int64_t> cancelled;  // refused or done, they are answered all the same
  collect(looked_, arrived, cancelled);
  return arrived;
}

std::vector<std::int64_t> SocketArrivals::offered() const {
  std::vector<std::int64_t> ids(to_size(next_));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

Duration SocketArrivals::next_look(Duration now) const { return now + kLookEvery; }

void SocketArrivals::take(const LineServer::Event& event, Duration now,
                          std::vector<Request>& arrived, std::vector<std::int64_t>& cancelled) {
  using Kind = LineConnection::Line::Kind;
  if (event.is_gone) {
    for (const auto& [request, asked] : open_)
      if (asked.client == event.client) cancelled.push_back(request);
    return;
  }
  if (event.line.kind != Kind::whole) {
    const bool is_half = event.line.kind == Kind::half;
    return server_.send(event.client, error_line(is_half ? "half a line" : "the line is too long"));
  }
  const ServiceLine line = parse_service_line(event.line.text);
  if (const auto* const asked = std::get_if<AskLine>(&line))
    ask(event.client, *asked, now, arrived);
  else if (const auto* const gone = std::get_if<CancelLine>(&line))
    cancel(event.client, *gone, cancelled);
  else if (const auto* const drained = std::get_if<DrainLine>(&line))
    drain(event.client, *drained);
  else
    server_.send(event.client, error_line(std::get<BadLine>(line).why));
}

void SocketArrivals::ask(std::int64_t client, const AskLine& line, Duration now,
                         std::vector<Request>& arrived) {
  if (!line.model.empty() && std::ranges::find(models_, line.model) == models_.end())
    return server_.send(client, error_line("\"model\": no [[prefill]] has that name"));
  if (!requests_.emplace(std::pair{client, line.id}, next_).second)
    return server_.send(client, error_line("\"id\": a request that waits has it already"));
  open_[next_] = {client, line.id};
  arrived.push_back({.id = next_++, .arrival = now, .tokens = line.tokens, .model = line.model});
}

void SocketArrivals::cancel(std::int64_t client, const CancelLine& line,
                            std::vector<std::int64_t>& cancelled) {
  const auto found = requests_.find({client, line.id});
  if (found == requests_.end())
    return server_.send(client, error_line("\"cancel\": no request that waits has that id"));
  cancelled.push_back(found->second);
}

void SocketArrivals::drain(std::int64_t client, const DrainLine& line) {
  bool is_some = false;
  for (const PipelineName& each : pipelines_) {
    if (each.second != line.pipeline) continue;
    if (!line.model.empty() && models_[each.first] != line.model) continue;
    is_some = true;
    if (line.drains)
      drained_.insert(each);
    else
      drained_.erase(each);
  }
  if (!is_some) server_.send(client, error_line("there is no such pipeline"));
}

void SocketArrivals::tell(const RequestNews& news) {
  const auto found = open_.find(news.request);
  if (found == open_.end()) return;
  server_.send(found->second.client, answer_line(found->second.id, news));
  if (news.kind == NewsKind::placed) return;
  requests_.erase({found->second.client, found->second.id});
  open_.erase(found);
}

void SocketArrivals::fail_open() {
  while (!open_.empty()) tell({.kind = NewsKind::failed, .request = open_.begin()->first});
  server_.flush(kLongestFlush);
}

}  // namespace longhaul::prefill
