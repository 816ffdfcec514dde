/* plugin.h: plug-ins in shared libraries.
 *
 *     WEFT_API weft_status weft_plugin(weft_error *error)          what the library has: it registers all that it adds
 *     {
 *         return weft_extend_op(&softsign, error);
 *     }
 *
 *     WEFT_TRY(weft_extend_load("./softsign.so", error));          what a program calls; or gpt --plugin ./softsign.so
 */
#ifndef WEFT_EXTEND_PLUGIN_H
#define WEFT_EXTEND_PLUGIN_H

#include "weft/error.h"

WEFT_BEGIN

/* weft_extend_load - load a shared library and call its weft_plugin, once however often it is asked for. Local; from one
 * thread at a time. All processes of a job load the same ones in the same order. It stays loaded.
 *
 * path     as dlopen takes it: with a / it is a file, without one the library path is searched
 * returns  WEFT_USAGE for what cannot be loaded or has no weft_plugin; else what that returned
 */
WEFT_API WEFT_MUST_CHECK weft_status weft_extend_load(const char *path, weft_error *error);

WEFT_END

#endif
