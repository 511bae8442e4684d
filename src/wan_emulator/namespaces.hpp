#pragma once

#include <functional>
#include <optional>
#include <string>

#include "wan_emulator/system_call.hpp"

namespace longhaul::wan_emulator {

/// Why network namespaces and TUN devices cannot be made here; nothing where they can.
[[nodiscard]] std::optional<std::string> why_impossible();

/// One network namespace, its loopback up. Nameless ones end with the last descriptor and thread in
/// them: nothing remains, however the process ends.
class NetworkNamespace {
public:
  [[nodiscard]] static NetworkNamespace create();
  /// As `ip netns add NAME` made it. Throws Error where there is none.
  [[nodiscard]] static NetworkNamespace named(const std::string& name);

  /// Runs `work` on a thread inside, waits, and passes its exception on. Sockets and devices that
  /// it opens stay inside when used from elsewhere.
  void inside(const std::function<void()>& work) const;
  /// A setting below /proc/sys/net: set("ipv4/tcp_rmem", "4096 131072 6291456").
  void set(const std::string& key, const std::string& value) const;
  [[nodiscard]] std::string get(const std::string& key) const;

private:
  explicit NetworkNamespace(FileDescriptor handle) : handle_{std::move(handle)} {}
  FileDescriptor handle_;
};

}  // namespace longhaul::wan_emulator
