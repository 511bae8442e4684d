# src/harness: what the benchmarks share. Folders that need no MPI are libraries of their own, so that
# benchmarks of one process link neither MPI nor the runtime; all others are one library.

# longhaul_harness_part(name USES target... [EXCLUDE regex]): src/harness/<name>/*.cpp.
function(longhaul_harness_part name)
  cmake_parse_arguments(ARG "" "EXCLUDE" "USES" ${ARGN})
  set(include_root ${CMAKE_BINARY_DIR}/include/harness_${name})
  file(MAKE_DIRECTORY ${include_root}/harness)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/harness/${name} ${include_root}/harness/${name} SYMBOLIC)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/harness/${name}/*.cpp)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  add_library(longhaul_harness_${name} STATIC ${sources})
  target_include_directories(longhaul_harness_${name} PUBLIC ${include_root})
  target_link_libraries(longhaul_harness_${name} PRIVATE longhaul_flags PUBLIC ${ARG_USES})
  longhaul_precompiled(longhaul_harness_${name} json)
endfunction()

# Where a run happens, for the record of every benchmark.
longhaul_harness_part(environment EXCLUDE "/kernel_main\\.cpp$"
                      USES longhaul_base nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
# The main function of kernels that Google Benchmark times.
find_package(benchmark REQUIRED)
add_library(longhaul_kernel_main STATIC ${CMAKE_SOURCE_DIR}/src/harness/environment/kernel_main.cpp)
target_link_libraries(longhaul_kernel_main PRIVATE longhaul_flags
                      PUBLIC longhaul_harness_environment benchmark::benchmark)
# The scenarios of those kernels.
longhaul_harness_part(bench_scenarios USES longhaul_schedule)
# The cost of traces of thousands of ranks.
longhaul_harness_part(trace_cost USES longhaul_harness_environment longhaul_trace longhaul_report)

# The cost of compression on a host.
longhaul_harness_part(compress_cost USES longhaul_harness_environment longhaul_compress
                                         longhaul_report)

if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # Real TCP over an emulated WAN: network namespaces and TUN devices.
  longhaul_module(wan_emulator USES base PUBLIC Threads::Threads)
  add_executable(wan_tun ${CMAKE_SOURCE_DIR}/src/wan_emulator/wan_tun.cpp)
  target_link_libraries(wan_tun PRIVATE longhaul_wan_emulator longhaul_flags)
  longhaul_harness_part(tcp USES longhaul_wan_emulator longhaul_harness_environment longhaul_trace
                                 longhaul_report)
endif()

if(LONGHAUL_WITH_MPI)
  # Layers alone, on one device.
  longhaul_harness_part(layers USES longhaul_harness_environment longhaul_nn longhaul_report)
  # The cost of compression on a device.
  longhaul_harness_part(compress_device USES longhaul_harness_compress_cost longhaul_harness_layers
                                             longhaul_device)
  set(harness ${CMAKE_SOURCE_DIR}/src/harness)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${harness}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/harness/(bench_scenarios|compress_cost|compress_device|environment|layers|tcp|trace_cost)/")
  set(include_root ${CMAKE_BINARY_DIR}/include/harness)
  file(MAKE_DIRECTORY ${include_root})
  file(CREATE_LINK ${harness} ${include_root}/harness SYMBOLIC)
  add_library(longhaul_harness STATIC ${sources})
  target_include_directories(longhaul_harness PUBLIC ${include_root})
  target_link_libraries(longhaul_harness PRIVATE longhaul_flags
                        PUBLIC longhaul_harness_environment longhaul_host longhaul_device
                               longhaul_training longhaul_report longhaul_prefill)
  longhaul_precompiled(longhaul_harness json)
endif()
