/* register: what the plug-in has, made known to Weft.
 *
 * weft_plugin is what programs look for in a shared library that --plugin names.
 */
#include "tables.h"

weft_status plugin_register(weft_error *error)
{
    WEFT_TRY(weft_extend_combine(&plugin_combine_product, &plugin_product_kind, error));
    WEFT_TRY(weft_extend_op(&plugin_op_product, error));
    WEFT_TRY(weft_extend_kernel("product", &plugin_kernel_product, error));
    WEFT_TRY(weft_extend_op(&plugin_op_softsign, error));
    return weft_extend_optimizer(&plugin_rule_signum, error);
}

WEFT_API weft_status weft_plugin(weft_error *error);
weft_status weft_plugin(weft_error *error)
{
    return plugin_register(error);
}
