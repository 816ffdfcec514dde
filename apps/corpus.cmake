# corpus.cmake: concatenate the files named in LIST (one a line) into CORPUS.
#
#   cmake -DLIST=corpus.list -DCORPUS=corpus.txt -P corpus.cmake
file(STRINGS ${LIST} names)
execute_process(COMMAND ${CMAKE_COMMAND} -E cat ${names} OUTPUT_FILE ${CORPUS}.new RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "cannot pack ${CORPUS}")
endif()
file(RENAME ${CORPUS}.new ${CORPUS})
