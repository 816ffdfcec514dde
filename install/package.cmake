# Debian packages, by `./run package`: one for each component, as Debian would cut and name them. What a package needs
# of others is found by dpkg-shlibdeps; what is only opened at run time is named here.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_VENDOR Weft)
set(CPACK_PACKAGE_CONTACT "The Weft authors <weft@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL library programs development python)
if(TARGET weft_read_files)
  list(APPEND CPACK_COMPONENTS_ALL files)
endif()
set(CPACK_STRIP_FILES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON) # so that others find ours
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(same "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libweft0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS libhdf5-103-1) # loaded by the first save
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Tensors have named dims; a layout, one line of text, maps them onto the named
axes of a processor mesh. This package is the library.")

set(CPACK_DEBIAN_FILES_PACKAGE_NAME libweft-files0)
set(CPACK_DEBIAN_FILES_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_FILES_PACKAGE_DEPENDS "libweft0 ${same}")
set(CPACK_COMPONENT_FILES_DESCRIPTION "What reads images and compressed data files, loaded by the first of them.")

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME weft)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS "libweft0 ${same}, libhdf5-103-1")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS "openmpi-bin, openssh-client, libmicrohttpd12") # gpt serve loads the last
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION "The programs: gpt trains transformers on text, mnist nets on images, charlm
recurrent nets on text, seq2seq encoders and decoders, word2vec vectors of words, on any mesh and layout; weft looks at machines, checkpoints and jobs that ended.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libweft-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libweft0 ${same}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "pkg-config, cmake")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers, weft.pc, a CMake package, and examples.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-weft)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
# The types come from the headers, when it is imported.
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "libweft-dev ${same}, python3:any, python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/python/postinst
                                               ${CMAKE_CURRENT_SOURCE_DIR}/python/prerm)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "The C library from Python: by ctypes, with numpy arrays in and out.")

foreach(component LIBRARY FILES PROGRAMS DEVELOPMENT PYTHON)
  string(TOLOWER ${component} name)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${component}_PACKAGE_NAME}
          RENAME copyright COMPONENT ${name})
endforeach()

include(CPack)
