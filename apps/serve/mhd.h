/* mhd.h: libmicrohttpd, loaded when a server begins: programs that serve nothing start without it, and run where it is not.
 *
 * source  libmicrohttpd's manual; "suspend" is how a connection waits for an answer.
 */
#ifndef WEFT_APPS_SERVE_MHD_H
#define WEFT_APPS_SERVE_MHD_H

#include <microhttpd.h>

#include "weft/error.h"

#define SERVE_MHD_FUNCTIONS(F)                                                                     \
    F(start_daemon)                                                                                \
    F(stop_daemon)                                                                                 \
    F(quiesce_daemon)                                                                              \
    F(create_response_from_buffer)                                                                 \
    F(create_response_from_callback)                                                               \
    F(add_response_header)                                                                         \
    F(queue_response)                                                                              \
    F(destroy_response)                                                                            \
    F(suspend_connection)                                                                          \
    F(resume_connection)                                                                           \
    F(get_connection_info)                                                                         \
    F(lookup_connection_value)

typedef struct serve_mhd {
#define SERVE_MHD_MEMBER(name) __typeof__(&MHD_##name) name;
    SERVE_MHD_FUNCTIONS(SERVE_MHD_MEMBER)
#undef SERVE_MHD_MEMBER
} serve_mhd;

/* serve_mhd_load - the library's functions; it stays loaded. Local. returns WEFT_USAGE where it is not installed */
weft_status serve_mhd_load(serve_mhd *mhd, weft_error *error);

#endif
