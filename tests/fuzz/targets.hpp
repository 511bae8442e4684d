#pragma once

#include <string_view>

/// The fuzzers' targets. Each takes any bytes, returns, and aborts (LONGHAUL_ASSERT) where a
/// promise is broken: what is refused is refused with an Error of exit code 2 in one line that
/// names the place, and what is accepted can be worked with. Crashes, hangs and memory without
/// bound are for the sanitizers and for libFuzzer's limits to find.
namespace longhaul::fuzz {

/// A scenario file. Lines "#set PATH=VALUE" are overrides of --set.
void scenario(std::string_view bytes);
/// A schedule's CSV.
void schedule_csv(std::string_view bytes);
/// A message of compressed numbers.
void payload(std::string_view bytes);
/// A profile, or what importers take; the first byte says which reader: k (Kineto), c (CUPTI), a
/// (collectives), t (tasks), any other (operators).
void profile(std::string_view bytes);
/// A file of requests: Azure's CSV or JSON lines.
void requests(std::string_view bytes);
/// What a client sends to bench_prefill --listen; the first byte is the size of the pieces in which
/// the rest comes.
void service(std::string_view bytes);
/// Not a file but decisions: what well-formed HDF5 to write, and what it lies about.
void trace(std::string_view bytes);

}  // namespace longhaul::fuzz
