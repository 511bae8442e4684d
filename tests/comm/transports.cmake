# The transports of GPUs' memory: on real ones (label gpu), and the same files on the emulator, with
# ranks as processes and as threads.
set(transport_sources ${tests}/comm/cuda/device_backends_test.cpp
                      ${tests}/support/ranks/mpi_main.cpp)

function(longhaul_transport_test target)
  add_executable(${target} ${transport_sources})
  target_include_directories(${target} PRIVATE ${tests})
  target_link_libraries(${target} PRIVATE longhaul_engine longhaul_host longhaul_flags GTest::gtest GTest::gmock)
  longhaul_precompiled(${target} test)
  longhaul_keep_loaded(${target})
endfunction()

if(LONGHAUL_CUDA)
  longhaul_transport_test(device_transport_test)
  target_include_directories(device_transport_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  foreach(ranks 1 2 4)
    add_test(NAME gpu.transports.ranks-${ranks}
             COMMAND ${CMAKE_SOURCE_DIR}/scripts/mpi -n ${ranks}
                     $<TARGET_FILE:device_transport_test>)
    set_tests_properties(gpu.transports.ranks-${ranks}
                         PROPERTIES LABELS "gpu;ranks-${ranks}" TIMEOUT 300 RUN_SERIAL TRUE
                                    SKIP_REGULAR_EXPRESSION "every test of this run was skipped")
  endforeach()
  add_test(NAME gpu.transports.threads-4
           COMMAND device_transport_test --ranks-per-process 4)
  set_tests_properties(gpu.transports.threads-4
                       PROPERTIES LABELS "gpu;threads" TIMEOUT 300 RUN_SERIAL TRUE
                                  SKIP_REGULAR_EXPRESSION "every test of this run was skipped")
endif()

if(LONGHAUL_CUDA_ON_HOST)
  longhaul_transport_test(device_transport_on_host_test)
  longhaul_on_host(device_transport_on_host_test)
  set(on_host LONGHAUL_ON_HOST_NCCL_SHARED_DEVICE=1)
  foreach(ranks 2 4)
    add_test(NAME cuda_on_host.transports.ranks-${ranks}
             COMMAND ${CMAKE_SOURCE_DIR}/scripts/mpi -n ${ranks}
                     $<TARGET_FILE:device_transport_on_host_test>)
    set_tests_properties(cuda_on_host.transports.ranks-${ranks}
                         PROPERTIES LABELS "mpi;ranks-${ranks}" TIMEOUT 300 RUN_SERIAL TRUE
                                    ENVIRONMENT ${on_host})
  endforeach()
  add_test(NAME cuda_on_host.transports.threads-4
           COMMAND device_transport_on_host_test --ranks-per-process 4)
  set_tests_properties(cuda_on_host.transports.threads-4
                       PROPERTIES LABELS "mpi;threads" TIMEOUT 300 RUN_SERIAL TRUE
                                  ENVIRONMENT LONGHAUL_ON_HOST_DEVICES=4)
endif()

if(LONGHAUL_CUDA_ON_HOST AND TARGET bench_pipeline_on_host)
  add_executable(device_runs_test ${tests}/integration/runs/device_runs_test.cpp)
  target_include_directories(device_runs_test PRIVATE ${tests})
  target_link_libraries(device_runs_test PRIVATE longhaul_sim longhaul_trace longhaul_flags
                                                 GTest::gtest GTest::gmock GTest::gtest_main)
  longhaul_precompiled(device_runs_test test)
  target_compile_definitions(
    device_runs_test PRIVATE LONGHAUL_MPI_SCRIPT="${CMAKE_SOURCE_DIR}/scripts/mpi"
                             LONGHAUL_BENCH_PIPELINE="$<TARGET_FILE:bench_pipeline_on_host>")
  add_dependencies(device_runs_test bench_pipeline_on_host)
  longhaul_discover_tests(device_runs_test cuda_on_host LABELS mpi TIMEOUT 300)
endif()
