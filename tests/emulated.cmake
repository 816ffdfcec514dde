# emulated.cmake: tests of programs for another processor (cmake/arm64.cmake, `./run test --arch arm64`).
#
# CTest puts CMAKE_CROSSCOMPILING_EMULATOR before a test's own program. Programs that tests start themselves, by path, stand
# in a folder as scripts that do the same: WEFT_TEST_PROGRAMS, which is where they are otherwise. WEFT_TEST_EMULATOR is its
# words, for a shell.
#
#   weft_not_emulated("reason" test...)    these say "skipped" with the reason, in such a build alone
#   weft_add_test(name COMMAND ...)        add_test, but for those

set(WEFT_TEST_PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " WEFT_TEST_EMULATOR)
if(CMAKE_CROSSCOMPILING_EMULATOR)
  set(WEFT_TEST_PROGRAMS ${CMAKE_BINARY_DIR}/emulated/bin)
endif()

# weft_emulated(bin/gpt gpt): WEFT_TEST_PROGRAMS/gpt runs the target gpt.
function(weft_emulated path target)
  if(NOT CMAKE_CROSSCOMPILING_EMULATOR)
    return()
  endif()
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/emulated/${path}
       CONTENT "#!/bin/sh\nexec ${WEFT_TEST_EMULATOR} $<TARGET_FILE:${target}> \"$@\"\n"
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endfunction()

function(weft_not_emulated reason)
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    foreach(test ${ARGN})
      set_property(GLOBAL PROPERTY weft_not_emulated_${test} "${reason}")
    endforeach()
  endif()
endfunction()

function(weft_add_test name)
  get_property(reason GLOBAL PROPERTY weft_not_emulated_${name})
  if(reason)
    add_test(NAME ${name} COMMAND sh -c "echo 'skipped: ${reason}'; exit 77")
  else()
    add_test(NAME ${name} ${ARGN})
  endif()
endfunction()

foreach(program gpt mnist charlm seq2seq word2vec)
  weft_emulated(bin/${program} ${program})
endforeach()
weft_emulated(bin/weft weft_app)
weft_emulated(tests/misbehave misbehave)

weft_not_emulated("a library for another processor, which python3 cannot load" python/weft)
weft_not_emulated("they compile programs with the compiler of this machine" install/headers install/examples install/readme install/plugin
                  install/packages)
weft_not_emulated("it starts programs by their paths" install/pages install/schemas apps/tune)
weft_not_emulated("an emulator has no filter on system calls, which weft-read-files and weft-read-hdf5 want" io/apart io/files io/hdf5_rows
                  io/mutated_files io/parquet_pyarrow io/random_chains)
weft_not_emulated("times under an emulator say nothing" bench/bench)
