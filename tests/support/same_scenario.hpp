#pragma once

#include <gtest/gtest.h>

#include "scenario/scenario.hpp"

namespace longhaul::testing {

inline void expect_same_weather(const Link& a, const Link& b) {
  ASSERT_EQ(a.weather.trace == nullptr, b.weather.trace == nullptr);
  if (a.weather.trace) {
    ASSERT_EQ(a.weather.trace->states.size(), b.weather.trace->states.size());
    for (std::size_t i = 0; i < a.weather.trace->states.size(); ++i) {
      EXPECT_EQ(a.weather.trace->states[i].at, b.weather.trace->states[i].at);
      EXPECT_EQ(a.weather.trace->states[i].latency, b.weather.trace->states[i].latency);
      EXPECT_EQ(a.weather.trace->states[i].bandwidth, b.weather.trace->states[i].bandwidth);
    }
  }
  EXPECT_EQ(a.weather.repeat, b.weather.repeat);
  EXPECT_EQ(a.weather.loss.probability, b.weather.loss.probability);
  EXPECT_EQ(a.weather.loss.delay, b.weather.loss.delay);
  ASSERT_EQ(a.weather.outages.size(), b.weather.outages.size());
  for (std::size_t i = 0; i < a.weather.outages.size(); ++i) {
    EXPECT_EQ(a.weather.outages[i].begin, b.weather.outages[i].begin);
    EXPECT_EQ(a.weather.outages[i].length, b.weather.outages[i].length);
  }
  EXPECT_EQ(a.jitter.latency, b.jitter.latency);
  EXPECT_EQ(a.jitter.transfer, b.jitter.transfer);
  EXPECT_EQ(a.jitter.correlation, b.jitter.correlation);
  EXPECT_EQ(a.jitter.kind, b.jitter.kind);
  EXPECT_EQ(a.jitter.seed, b.jitter.seed);
}

inline void expect_same_network(const Scenario& a, const Scenario& b) {
  EXPECT_EQ(a.placement, b.placement);
  ASSERT_EQ(a.datacenters.size(), b.datacenters.size());
  for (std::size_t i = 0; i < a.datacenters.size(); ++i) {
    EXPECT_EQ(a.datacenters[i].name, b.datacenters[i].name);
    EXPECT_EQ(a.datacenters[i].speed, b.datacenters[i].speed);
    EXPECT_EQ(a.datacenters[i].gpus, b.datacenters[i].gpus);
    EXPECT_EQ(a.datacenters[i].region, b.datacenters[i].region);
  }
  ASSERT_EQ(a.links.size(), b.links.size());
  for (std::size_t i = 0; i < a.links.size(); ++i) {
    EXPECT_EQ(a.links[i].from, b.links[i].from);
    EXPECT_EQ(a.links[i].to, b.links[i].to);
    EXPECT_EQ(a.links[i].latency, b.links[i].latency);
    EXPECT_EQ(a.links[i].bandwidth, b.links[i].bandwidth);
    EXPECT_EQ(a.links[i].sharing, b.links[i].sharing);
    EXPECT_EQ(a.links[i].aggregate, b.links[i].aggregate);
    expect_same_weather(a.links[i], b.links[i]);
  }
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    EXPECT_EQ(a.nodes[i].datacenter, b.nodes[i].datacenter);
    EXPECT_EQ(a.nodes[i].gpus, b.nodes[i].gpus);
    EXPECT_EQ(a.nodes[i].egress, b.nodes[i].egress);
    EXPECT_EQ(a.nodes[i].ingress, b.nodes[i].ingress);
    EXPECT_EQ(a.nodes[i].internal, b.nodes[i].internal);
    EXPECT_EQ(a.nodes[i].internal_latency, b.nodes[i].internal_latency);
    EXPECT_EQ(a.nodes[i].device, b.nodes[i].device);
    EXPECT_EQ(a.nodes[i].device_latency, b.nodes[i].device_latency);
  }
}

/// Do two scenarios say the same, text included?
inline void expect_same_scenario(const Scenario& a, const Scenario& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.text, b.text);
  ASSERT_EQ(a.model.has_value(), b.model.has_value());
  if (a.model) {
    EXPECT_EQ(a.model->layers, b.model->layers);
  }
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.parallel.stages, b.parallel.stages);
  EXPECT_EQ(a.parallel.replicas, b.parallel.replicas);
  EXPECT_EQ(a.parallel.microbatches, b.parallel.microbatches);
  EXPECT_EQ(a.parallel.chunks, b.parallel.chunks);
  EXPECT_EQ(a.parallel.gradient_sync, b.parallel.gradient_sync);
  EXPECT_EQ(a.parallel.cell, b.parallel.cell);
  for (auto times :
       {&Costs::forward, &Costs::backward, &Costs::dgrad, &Costs::wgrad, &Costs::recompute})
    EXPECT_EQ(a.costs.*times, b.costs.*times);
  for (auto sizes : {&Costs::activation, &Costs::message, &Costs::weights})
    EXPECT_EQ(a.costs.*sizes, b.costs.*sizes);
  EXPECT_EQ(a.memory.budget, b.memory.budget);
  EXPECT_EQ(a.memory.capacity, b.memory.capacity);
  EXPECT_EQ(a.overlap, b.overlap);
  EXPECT_EQ(a.run.seed, b.run.seed);
  EXPECT_EQ(a.run.iterations, b.run.iterations);
  EXPECT_EQ(a.run.time_scale, b.run.time_scale);
  EXPECT_EQ(a.run.stragglers, b.run.stragglers);
  expect_same_network(a, b);
}

}  // namespace longhaul::testing
