# libweft_cuda.so, which the library loads where a program asks for the device cuda: built where the CUDA Toolkit is. It takes the
# Toolkit's headers and compilers to build; the driver is loaded at run time, so no file of it is needed here.
#
#   weft_cuda               its objects, which tests link too
#   weft_cuda_image(box mesh/cuda/box.cu)     kernels, compiled for WEFT_CUDA_ARCHITECTURES: <build>/cuda/box.fatbin, and what
#                           the assembler says of each, box.report, which tests/cuda/kernels_test.c reads
#   weft_cuda_images        all of them. They do not depend on how C is compiled: a build that is told another's folder by
#                           WEFT_CUDA_IMAGES takes those, as that build has left them
option(WEFT_WITH_CUDA "libweft_cuda.so, where the CUDA Toolkit is found" ON)
set(WEFT_CUDA_ARCHITECTURES 80 90 CACHE STRING "compute capabilities that kernels are compiled for; later ones compile text")
if(WEFT_WITH_CUDA)
  find_package(CUDAToolkit QUIET)
endif()
set(WEFT_HAS_CUDA OFF)
if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
  set(WEFT_HAS_CUDA ON)
  message(STATUS "CUDA Toolkit ${CUDAToolkit_VERSION}: libweft_cuda.so is built, for sm_${WEFT_CUDA_ARCHITECTURES}")
else()
  message(STATUS "No CUDA Toolkit (nvcc): libweft_cuda.so is left out; there is the device cpu alone")
  add_custom_target(weft_cuda_images)
  return()
endif()

set(WEFT_CUDA_IMAGES ${CMAKE_BINARY_DIR}/cuda CACHE PATH "where compiled kernels are: here, or in the build that compiles them")
file(MAKE_DIRECTORY ${WEFT_CUDA_IMAGES})
list(GET WEFT_CUDA_ARCHITECTURES -1 newest)
set(code "-gencode=arch=compute_${newest},code=compute_${newest}")
foreach(architecture ${WEFT_CUDA_ARCHITECTURES})
  list(APPEND code "-gencode=arch=compute_${architecture},code=sm_${architecture}")
endforeach()
list(JOIN code " " code)

function(weft_cuda_compile image report source)
  add_custom_command(OUTPUT ${image} ${report} VERBATIM DEPFILE ${image}.d
    COMMAND sh -c "${CUDAToolkit_NVCC_EXECUTABLE} -fatbin -O3 -std=c++17 --Werror all-warnings -Xptxas -v ${code} \
-I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/mesh/include -I${CMAKE_SOURCE_DIR}/ops/include -MD -MF ${image}.d -MT ${image} \
-o ${image} ${CMAKE_SOURCE_DIR}/${source} 2> ${report} || { cat ${report} >&2; exit 1; }"
    DEPENDS ${CMAKE_SOURCE_DIR}/${source} COMMENT "Compiling kernels ${source} for sm_${WEFT_CUDA_ARCHITECTURES}")
endfunction()

function(weft_cuda_image name source)
  set(image ${WEFT_CUDA_IMAGES}/${name}.fatbin)
  set(report ${WEFT_CUDA_IMAGES}/${name}.report)
  if(WEFT_CUDA_IMAGES STREQUAL "${CMAKE_BINARY_DIR}/cuda")
    weft_cuda_compile(${image} ${report} ${source})
  endif()
  set_property(GLOBAL APPEND PROPERTY weft_cuda_images ${image})
  set_property(GLOBAL APPEND PROPERTY weft_cuda_kernels ${CMAKE_SOURCE_DIR}/${source})
endfunction()

weft_cuda_image(box mesh/cuda/box.cu)
foreach(name attend convert cumulate index linear order pick_product product reduce shape window)
  weft_cuda_image(${name} ops/kernel/cuda/${name}.cu)
endforeach()

get_property(images GLOBAL PROPERTY weft_cuda_images)
add_custom_target(weft_cuda_images DEPENDS ${images})
add_library(weft_cuda STATIC mesh/cuda/boxes.c mesh/cuda/device.c mesh/cuda/driver.c mesh/cuda/image.c mesh/cuda/keep.c mesh/cuda/launch.c mesh/cuda/library.c
            mesh/cuda/memory.c mesh/cuda/queues.c ops/kernel/cuda/images.c ops/kernel/cuda/index.c ops/kernel/cuda/nest.c
            ops/kernel/cuda/attend.c ops/kernel/cuda/cache.c ops/kernel/cuda/compile.c ops/kernel/cuda/cumulate.c ops/kernel/cuda/headers.c ops/kernel/cuda/linear.c
            ops/kernel/cuda/loop.c ops/kernel/cuda/loop_text.c ops/kernel/cuda/loop_words.c ops/kernel/cuda/order.c ops/kernel/cuda/pick_product.c ops/kernel/cuda/plugin.c ops/kernel/cuda/product.c ops/kernel/cuda/reduce.c ops/kernel/cuda/shape.c
            ops/kernel/cuda/window.c)
# NCCL is loaded at run time, and takes its header alone to build.
find_path(WEFT_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(WEFT_NCCL_INCLUDE_DIR)
set(WEFT_HAS_NCCL OFF)
if(WEFT_NCCL_INCLUDE_DIR)
  set(WEFT_HAS_NCCL ON)
  target_sources(weft_cuda PRIVATE collectives/cuda/nccl.c collectives/cuda/nccl_engine.c collectives/cuda/nccl_groups.c)
  target_compile_definitions(weft_cuda PRIVATE WEFT_HAS_NCCL)
  target_include_directories(weft_cuda SYSTEM PRIVATE ${WEFT_NCCL_INCLUDE_DIR})
else()
  message(STATUS "No nccl.h: GPUs exchange through the host's memory")
endif()
target_compile_options(weft_cuda PRIVATE ${WEFT_WARNINGS})
target_include_directories(weft_cuda PUBLIC ${CMAKE_SOURCE_DIR} PRIVATE ops/kernel mesh/cuda ops/kernel/cuda)
target_include_directories(weft_cuda SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
target_compile_definitions(weft_cuda PRIVATE WEFT_NO_HERE WEFT_VERSION="${PROJECT_VERSION}" WEFT_CUDA_IMAGES="${WEFT_CUDA_IMAGES}"
                           WEFT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
foreach(room mesh layout collectives kernel op)
  target_include_directories(weft_cuda PRIVATE $<TARGET_PROPERTY:weft_${room},INTERFACE_INCLUDE_DIRECTORIES>)
endforeach()
# Libraries of the Toolkit that are loaded at run time, each where its header is.
find_path(WEFT_CUBLASLT_INCLUDE cublasLt.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
if(WEFT_CUBLASLT_INCLUDE)
  target_sources(weft_cuda PRIVATE ops/kernel/cuda/cublaslt.c ops/kernel/cuda/matrices.c ops/kernel/cuda/product_cublaslt.c)
  target_compile_definitions(weft_cuda PRIVATE WEFT_CUDA_HAS_CUBLASLT)
endif()
find_path(WEFT_CUDNN_INCLUDE cudnn.h PATHS ${CUDAToolkit_INCLUDE_DIRS}) # it may be of a package of its own
if(WEFT_CUDNN_INCLUDE)
  target_sources(weft_cuda PRIVATE ops/kernel/cuda/attend_dnn.c ops/kernel/cuda/attend_graph.c ops/kernel/cuda/convert.c ops/kernel/cuda/conv_dnn.c
                 ops/kernel/cuda/conv_graph.c ops/kernel/cuda/dnn.c)
  target_include_directories(weft_cuda SYSTEM PRIVATE ${WEFT_CUDNN_INCLUDE})
  target_compile_definitions(weft_cuda PRIVATE WEFT_CUDA_HAS_CUDNN)
endif()
# The headers of kernels that are compiled later are in the library.
file(STRINGS ops/kernel/cuda/headers.inc header_lines REGEX "^HEADER")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ops/kernel/cuda/headers.inc)
set(headers ${CMAKE_SOURCE_DIR}/ops/kernel/cuda/stand_in.h)
foreach(line ${header_lines})
  string(REGEX REPLACE ".*, \"([^\"]+)\"\\)" "${CMAKE_SOURCE_DIR}/\\1" header "${line}")
  list(APPEND headers ${header})
endforeach()
set_source_files_properties(ops/kernel/cuda/headers.c PROPERTIES OBJECT_DEPENDS "${headers}")
set_source_files_properties(mesh/cuda/image.c ops/kernel/cuda/images.c PROPERTIES OBJECT_DEPENDS "${images}")

add_library(weft_cuda_library SHARED $<TARGET_OBJECTS:weft_cuda>)
set_target_properties(weft_cuda_library PROPERTIES OUTPUT_NAME weft_cuda BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN"
                                                   LINKER_LANGUAGE C)
target_link_libraries(weft_cuda_library PRIVATE weft ${CMAKE_DL_LIBS} -Wl,--no-undefined)
