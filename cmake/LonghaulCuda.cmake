# CUDA, NCCL and CUPTI, where they are: sets LONGHAUL_CUDA and LONGHAUL_NCCL (TRUE or FALSE) and says
# why.
# AUTO looks for them, ON insists, OFF leaves them out. Sanitized builds leave them out unless told
# otherwise: there the emulator (tests/cuda_emulator) runs the same sources.
set(LONGHAUL_WITH_CUDA AUTO CACHE STRING "The CUDA device (needs nvcc): AUTO, ON, OFF")
set(LONGHAUL_WITH_NCCL AUTO CACHE STRING "The NCCL transport (needs CUDA and NCCL): AUTO, ON, OFF")
set(LONGHAUL_CUDA_ARCHITECTURES 90 CACHE STRING
    "GPUs to compile for, where CMAKE_CUDA_ARCHITECTURES does not say (90: H100, H200; 80: A100)")
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(can_emulate ON)
endif()
option(LONGHAUL_CUDA_ON_HOST "Test CUDA code on the CPU too (tests/cuda_emulator)" ${can_emulate})
set(LONGHAUL_CUDA FALSE)
set(LONGHAUL_NCCL FALSE)

# longhaul_find_cuda(why): empty where CUDA can be used. A macro: languages live in directories.
macro(longhaul_find_cuda why)
  set(${why} "")
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES ${LONGHAUL_CUDA_ARCHITECTURES})
  endif()
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(LONGHAUL_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
                 PATH_SUFFIXES bin)
    mark_as_advanced(LONGHAUL_NVCC)
    if(LONGHAUL_NVCC)
      set(CMAKE_CUDA_COMPILER ${LONGHAUL_NVCC})
    endif()
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(${why} "no nvcc that works with this C++ compiler, in PATH or /usr/local/cuda")
  else()
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    endif()
    # nvcc hides the host compiler's own directories: naming /usr/include again breaks <cmath>.
    list(APPEND CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
    find_package(CUDAToolkit QUIET)
    find_path(LONGHAUL_CUBLASLT_INCLUDE cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    mark_as_advanced(LONGHAUL_CUBLASLT_INCLUDE)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
      set(${why} "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old for C++20 (12.0)")
    elseif(NOT TARGET CUDA::cudart_static)
      set(${why} "nvcc is here, its runtime library (cudart_static) is not")
    elseif(NOT LONGHAUL_CUBLASLT_INCLUDE)
      set(${why} "nvcc is here, cublasLt.h is not")
    endif()
  endif()
endmacro()

function(longhaul_find_nccl why)
  set(${why} "" PARENT_SCOPE)
  find_path(LONGHAUL_NCCL_INCLUDE nccl.h
            HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_ROOT ENV NCCL_HOME PATH_SUFFIXES include)
  find_library(LONGHAUL_NCCL_LIBRARY NAMES nccl libnccl.so.2
               HINTS ${CUDAToolkit_LIBRARY_DIR} ENV NCCL_ROOT ENV NCCL_HOME
               PATH_SUFFIXES lib lib64)
  mark_as_advanced(LONGHAUL_NCCL_INCLUDE LONGHAUL_NCCL_LIBRARY)
  if(NOT LONGHAUL_NCCL_INCLUDE OR NOT LONGHAUL_NCCL_LIBRARY)
    set(${why} "no nccl.h and libnccl.so beside CUDA, in the system or in NCCL_ROOT" PARENT_SCOPE)
  endif()
endfunction()

function(longhaul_accelerator_line)
  set(cuda "off (${no_cuda})")
  set(nccl "off (${no_nccl})")
  if(LONGHAUL_CUDA)
    list(TRANSFORM CMAKE_CUDA_ARCHITECTURES PREPEND sm_ OUTPUT_VARIABLE architectures)
    list(JOIN architectures " and " architectures)
    set(cuda "on (${CMAKE_CUDA_COMPILER} ${CUDAToolkit_VERSION}, for ${architectures})")
  endif()
  if(LONGHAUL_NCCL)
    set(nccl "on (${LONGHAUL_NCCL_LIBRARY})")
  endif()
  message(STATUS "CUDA: ${cuda}; NCCL: ${nccl}")
endfunction()

if(NOT LONGHAUL_WITH_MPI)
  set(no_cuda "it belongs to the runtime: LONGHAUL_WITH_MPI is off")
elseif(LONGHAUL_WITH_CUDA STREQUAL "AUTO" AND LONGHAUL_SANITIZE)
  set(no_cuda "sanitized builds run the stand-in")
elseif(LONGHAUL_WITH_CUDA STREQUAL "AUTO" OR LONGHAUL_WITH_CUDA)
  longhaul_find_cuda(no_cuda)
  if(NOT no_cuda)
    set(LONGHAUL_CUDA TRUE)
  elseif(NOT LONGHAUL_WITH_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "LONGHAUL_WITH_CUDA=${LONGHAUL_WITH_CUDA}: ${no_cuda}. Put nvcc into PATH, "
                        "or set CUDACXX or CUDA_HOME.")
  endif()
else()
  set(no_cuda "LONGHAUL_WITH_CUDA=${LONGHAUL_WITH_CUDA}")
endif()

if(NOT LONGHAUL_CUDA)
  set(no_nccl "no CUDA")
elseif(LONGHAUL_WITH_NCCL STREQUAL "AUTO" OR LONGHAUL_WITH_NCCL)
  longhaul_find_nccl(no_nccl)
  if(NOT no_nccl)
    set(LONGHAUL_NCCL TRUE)
  endif()
else()
  set(no_nccl "LONGHAUL_WITH_NCCL=${LONGHAUL_WITH_NCCL}")
endif()
if(NOT LONGHAUL_NCCL AND NOT LONGHAUL_WITH_NCCL STREQUAL "AUTO" AND LONGHAUL_WITH_NCCL)
  message(FATAL_ERROR "LONGHAUL_WITH_NCCL=${LONGHAUL_WITH_NCCL}: ${no_nccl}. Set NCCL_ROOT.")
endif()
longhaul_accelerator_line()

# Modules that have files for a GPU, in folders cuda/ and nccl/, and files that say that there is
# none, in without_gpu/.
set(LONGHAUL_GPU_MODULES cuda nn comm device)

# longhaul_cuda_sources(out module...): the CUDA files of these modules, without NCCL's; `forward/`
# holds what loads CUDA's libraries, which the emulator replaces.
function(longhaul_cuda_sources out)
  set(sources "")
  foreach(module ${ARGN})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${module}/*.cu
         ${CMAKE_SOURCE_DIR}/src/${module}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  list(FILTER sources INCLUDE REGEX "/cuda/")
  list(FILTER sources EXCLUDE REGEX "/without_gpu/|/cudnn_attention\\.cpp$")
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# longhaul_cudnn_attention(target): cuDNN's attention instead of the file that says that there is
# none, where cudnn.h and its front end are (headers alone: nvidia-cudnn-frontend on PyPI; its
# prefix in CUDNN_FRONTEND_ROOT). The library itself is looked for when a program runs.
function(longhaul_cudnn_attention target)
  find_path(LONGHAUL_CUDNN_INCLUDE cudnn.h
            HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_ROOT PATH_SUFFIXES include)
  find_path(LONGHAUL_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
            HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_FRONTEND_ROOT PATH_SUFFIXES include)
  mark_as_advanced(LONGHAUL_CUDNN_INCLUDE LONGHAUL_CUDNN_FRONTEND_INCLUDE)
  set(folder ${CMAKE_SOURCE_DIR}/src/nn/cuda)
  if(NOT LONGHAUL_CUDNN_INCLUDE OR NOT LONGHAUL_CUDNN_FRONTEND_INCLUDE)
    message(STATUS "cuDNN's attention: off (no cudnn.h, or no cudnn_frontend.h in "
                   "CUDNN_FRONTEND_ROOT); our own is used")
    return()
  endif()
  message(STATUS "cuDNN's attention: on (${LONGHAUL_CUDNN_FRONTEND_INCLUDE})")
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "/without_cudnn\\.cpp$")
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
  target_sources(${target} PRIVATE ${folder}/cudnn_attention.cpp)
  target_include_directories(${target} SYSTEM PRIVATE ${LONGHAUL_CUDNN_INCLUDE}
                                                      ${LONGHAUL_CUDNN_FRONTEND_INCLUDE})
  set_source_files_properties(
    ${folder}/cudnn_attention.cpp TARGET_DIRECTORY ${target}
    PROPERTIES COMPILE_DEFINITIONS
               "NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING;CUDNN_FRONTEND_SKIP_JSON_LIB")
endfunction()

# longhaul_cupti(target): traces of tasks, where cupti.h is beside CUDA; otherwise the file that says
# that there are none. The library itself is looked for when a program runs.
function(longhaul_cupti target)
  set(folder ${CMAKE_SOURCE_DIR}/src/cuda)
  if(LONGHAUL_CUDA)
    find_path(LONGHAUL_CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
              PATHS ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include
                    ${CUDAToolkit_INCLUDE_DIRS}/../extras/CUPTI/include)
    mark_as_advanced(LONGHAUL_CUPTI_INCLUDE)
  endif()
  if(LONGHAUL_CUDA AND LONGHAUL_CUPTI_INCLUDE)
    message(STATUS "CUPTI's traces of tasks: on (${LONGHAUL_CUPTI_INCLUDE})")
    target_include_directories(${target} SYSTEM PRIVATE ${LONGHAUL_CUPTI_INCLUDE})
    return()
  endif()
  if(LONGHAUL_CUDA)
    message(STATUS "CUPTI's traces of tasks: off (no cupti.h beside CUDA)")
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources EXCLUDE REGEX "/cupti(_trace)?\\.cpp$")
    set_target_properties(${target} PROPERTIES SOURCES "${sources}")
  endif()
  target_sources(${target} PRIVATE ${folder}/without_gpu/without_cupti.cpp)
endfunction()

function(longhaul_nccl_sources out)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/comm/nccl/*.cpp)
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# longhaul_cuda_module(name): completes longhaul_<name> with its CUDA files.
function(longhaul_cuda_module name)
  set(target longhaul_${name})
  longhaul_cuda_sources(sources ${name})
  if(NOT LONGHAUL_NCCL)
    list(FILTER sources EXCLUDE REGEX "/forward/nccl\\.cpp$")
  endif()
  # Each by itself: forward/ says the same of several libraries, and nvcc takes no batches.
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${sources})
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS}
                                                      ${LONGHAUL_CUBLASLT_INCLUDE})
  # The static runtime: programs start where there is no driver, and say so when they are asked.
  target_link_libraries(${target} PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
  target_compile_definitions(${target} PRIVATE LONGHAUL_CUDA_LIBRARIES="${CUDAToolkit_LIBRARY_DIR}")
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
endfunction()

# longhaul_accelerators(): completes the modules with CUDA and NCCL, or with the files that say that
# there are none.
function(longhaul_accelerators)
  # Each by itself: the emulator's objects stand for them, and an archive's member is taken whole.
  file(GLOB without ${CMAKE_SOURCE_DIR}/src/*/without_gpu/*.cpp)
  set_source_files_properties(${without} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  foreach(name ${LONGHAUL_GPU_MODULES})
    if(LONGHAUL_CUDA)
      longhaul_cuda_module(${name})
    else()
      target_sources(longhaul_${name}
                     PRIVATE ${CMAKE_SOURCE_DIR}/src/${name}/without_gpu/without_cuda.cpp)
    endif()
  endforeach()
  longhaul_cupti(longhaul_cuda)
  if(LONGHAUL_CUDA)
    longhaul_cudnn_attention(longhaul_nn)
  endif()
  if(LONGHAUL_NCCL)
    longhaul_nccl_sources(sources)
    set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_sources(longhaul_comm PRIVATE ${sources})
    foreach(name cuda comm)
      target_include_directories(longhaul_${name} SYSTEM PRIVATE ${LONGHAUL_NCCL_INCLUDE})
    endforeach()
  else()
    target_sources(longhaul_comm
                   PRIVATE ${CMAKE_SOURCE_DIR}/src/comm/without_gpu/without_nccl.cpp)
  endif()
endfunction()
