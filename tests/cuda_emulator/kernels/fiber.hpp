#pragma once

#include <cstddef>
#include <functional>

namespace longhaul::on_host {

/// A point from which a thread of the host can go on: on its own stack, or on a fiber's.
class Context {
public:
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

protected:
  friend void switch_context(Context& from, Context& to);
  friend class Fiber;
  void* stack_pointer_ = nullptr;
  const void* bottom_ = nullptr;  ///< for the address sanitizer, with the two below
  std::size_t size_ = 0;
  void* fake_stack_ = nullptr;
};

/// Goes on in `to`; returns when another fiber switches back to `from`.
void switch_context(Context& from, Context& to);

/// A stack of its own that runs `body`, which never returns.
class Fiber : public Context {
public:
  /// `home`: the context that enters it first.
  Fiber(Context& home, std::function<void()> body);
  ~Fiber();

  void run();  ///< for its own entry

private:
  Context& home_;
  std::function<void()> body_;
  std::byte* memory_;
};

}  // namespace longhaul::on_host
