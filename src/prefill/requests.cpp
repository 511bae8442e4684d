#include "prefill/requests.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/error.hpp"
#include "base/program/option_values.hpp"
#include "base/random.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"

namespace longhaul::prefill {
namespace {

std::unique_ptr<std::istream> opened(const std::filesystem::path& file) {
  refuse_named_pipe(file);
  if (std::filesystem::is_directory(file))
    fail("{}: it cannot be read (this is a directory). Name a file.", file.string());
  auto stream = std::make_unique<std::ifstream>(file, std::ios::binary);
  if (!*stream)
    fail("{}: it cannot be read ({}). Check the name.", file.string(), std::strerror(errno));
  return stream;
}

/// Copies 1 to N - 1 shifted around the trace, each by its own seeded time.
void add_copies(std::vector<Request>& requests, int copies, std::uint64_t seed) {
  const std::vector<Request> file = requests;
  if (file.empty()) return;
  const std::int64_t span = std::max<std::int64_t>(1, file.back().arrival.count());
  const std::int64_t ids = std::ranges::max(file, {}, &Request::id).id + 1;
  for (int copy = 1; copy < copies; ++copy) {
    Random random{derived_seed(seed, 0x636f7079, static_cast<std::uint64_t>(copy))};
    const std::int64_t shift = random.between(0, span - 1);
    for (Request request : file) {
      request.id += copy * ids;
      request.arrival = Duration{(request.arrival.count() + shift) % span};
      requests.push_back(std::move(request));
    }
  }
}

/// The request with its arrival at so many nanoseconds. Throws Error that names the option where
/// that is out of range.
Request arriving(Request request, double ns, const char* option) {
  if (!(ns <= static_cast<double>(kLatestArrival.count())))
    fail("{}: request {} would arrive after {:.3g} s, beyond {}. Give a larger rate.", option,
         request.id, ns / 1e9, to_text(kLatestArrival));
  request.arrival = Duration{std::llround(ns)};
  return request;
}

bool is_in_window(const Request& request, const LoadOptions& options) {
  return request.arrival >= options.window_from.value_or(Duration{}) &&
         (!options.window_to || request.arrival < *options.window_to);
}

Request faster(Request request, double rate) {
  if (rate == 1) return request;
  const double ns = static_cast<double>(request.arrival.count()) * (1 / rate);
  return arriving(std::move(request), ns, "--rate");
}

}  // namespace

std::vector<Request> parse_requests(std::string_view text, const std::string& name) {
  RequestParser parser{name};
  std::vector<Request> requests;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (auto request = parser.take(text.substr(begin, end - begin)))
      requests.push_back(*std::move(request));
    begin = end + 1;
  }
  parser.finish();
  return requests;
}

RequestFile::RequestFile(const std::filesystem::path& file)
    : RequestFile{opened(file), file.string()} {}

RequestFile::RequestFile(std::unique_ptr<std::istream> stream, const std::string& name,
                         std::size_t longest)
    : name_{name}, parser_{name}, stream_{std::move(stream)}, buffer_(longest + 1) {}

/// The next line without its end; nullopt: the file is over.
std::optional<std::string_view> RequestFile::line() {
  const char* end = nullptr;
  while (true) {
    char* const begin = buffer_.data() + begin_;
    end = static_cast<const char*>(std::memchr(begin + seen_, '\n', end_ - begin_ - seen_));
    if (end != nullptr) break;
    seen_ = end_ - begin_;
    if (is_over_) break;
    if (seen_ == buffer_.size())
      fail("{}: a line has more than {} bytes (after {} requests). Correct it.", name_,
           buffer_.size() - 1, parser_.count());
    std::memmove(buffer_.data(), begin, seen_);
    begin_ = 0;
    stream_->read(buffer_.data() + seen_, static_cast<std::streamsize>(buffer_.size() - seen_));
    end_ = seen_ + static_cast<std::size_t>(stream_->gcount());
    is_over_ = !*stream_;
  }
  if (end == nullptr && seen_ == 0) return std::nullopt;
  const std::size_t length =
      end == nullptr ? seen_ : static_cast<std::size_t>(end - (buffer_.data() + begin_));
  const std::string_view line{buffer_.data() + begin_, length};
  begin_ = std::min(end_, begin_ + length + 1);
  seen_ = 0;
  return line;
}

std::optional<Request> RequestFile::next() {
  while (const auto text = line())
    if (auto request = parser_.take(*text)) return request;
  parser_.finish();
  return std::nullopt;
}

void set_window(const std::string& text, LoadOptions& load) {
  const std::vector<std::string> ends = words_of(text, ',');
  if (ends.size() != 2) fail("--window: \"{}\" is no window. Write FROM,TO, as in 60s,120s.", text);
  const auto time = [](const std::string& word) -> std::optional<Duration> {
    if (word.empty()) return std::nullopt;
    try {
      return parse_duration(word);
    } catch (const Error& error) {
      fail("--window: {}", error.what());
    }
  };
  load.window_from = time(ends[0]);
  load.window_to = time(ends[1]);
  if (load.window_to && *load.window_to <= load.window_from.value_or(Duration{}))
    fail("--window: {} ends before it begins. Write FROM,TO.", text);
}

std::vector<Request> offered_load(std::vector<Request> requests, const LoadOptions& options) {
  std::erase_if(requests, [&](const Request& each) { return !is_in_window(each, options); });
  for (Request& request : requests) request.arrival -= options.window_from.value_or(Duration{});
  if (options.copies > 1) add_copies(requests, options.copies, options.seed);
  if (options.rate != 1)
    for (Request& request : requests) request = faster(std::move(request), options.rate);
  const auto before = [](const Request& a, const Request& b) {
    return std::pair{a.arrival, a.id} < std::pair{b.arrival, b.id};
  };
  if (!std::ranges::is_sorted(requests, before)) std::ranges::stable_sort(requests, before);
  if (options.poisson) {
    PoissonArrivals arrivals{*options.poisson, options.seed};
    for (Request& request : requests) request = arrivals.next(std::move(request));
  }
  return requests;
}

PoissonArrivals::PoissonArrivals(double rate, std::uint64_t seed)
    : rate_{rate}, random_{derived_seed(seed, 0x706f6973)} {}

Request PoissonArrivals::next(Request request) {
  seconds_ -= std::log1p(-random_.uniform()) / rate_;
  return arriving(std::move(request), seconds_ * 1e9, "--poisson");
}

OfferedStream::OfferedStream(RequestFile& file, const LoadOptions& options)
    : file_{file}, options_{options} {
  LONGHAUL_ASSERT(options.copies == 1, "{} copies are no stream", options.copies);
  if (options.poisson) poisson_.emplace(*options.poisson, options.seed);
}

std::optional<Request> OfferedStream::next() {
  while (auto request = file_.next()) {
    if (options_.window_to && request->arrival >= *options_.window_to) return std::nullopt;
    if (!is_in_window(*request, options_)) continue;
    request->arrival -= options_.window_from.value_or(Duration{});
    Request offered = faster(*std::move(request), options_.rate);
    return poisson_ ? poisson_->next(std::move(offered)) : std::move(offered);
  }
  return std::nullopt;
}

}  // namespace longhaul::prefill
