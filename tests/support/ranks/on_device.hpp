#pragma once

#include <gtest/gtest.h>

#include "cuda/accelerator.hpp"
#include "cuda/device_clock.hpp"
#include "cuda/handles.hpp"
#include "cuda/spin.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {

/// Tests that use device 0, from every rank.
class OnDevice : public RanksTest {
protected:
  void SetUp() override {
    const std::string why = cuda::why_no_accelerator();
    if (!why.empty()) GTEST_SKIP() << why;
    cuda::use_device(0);
  }
  static cuda::DeviceClock& clock() { return cuda::DeviceClock::of(0); }
};

/// Work on a stream that tests look at when all of it is done.
class Stamped {
public:
  explicit Stamped(std::size_t count) : stamps_{count} {}
  void stamp() { cuda::stamp(&stamps_[next_++], stream_.get()); }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  [[nodiscard]] std::uint64_t at(std::size_t i) const {
    stream_.wait_on_host();
    return stamps_[i];
  }

private:
  cuda::PinnedMemory<std::uint64_t> stamps_;
  cuda::Stream stream_;  ///< last: it ends before the memory
  std::size_t next_ = 0;
};

}  // namespace longhaul::testing
