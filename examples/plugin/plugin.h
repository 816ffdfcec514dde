/* plugin.h: what the plug-in adds: an op with a kernel, a combine, an element op, an optimizer. */
#ifndef PLUGIN_H
#define PLUGIN_H

#include <weft.h>

/* Every process calls it once, before it builds a graph. */
weft_status plugin_register(weft_error *error);

/* The product of x over dim `dim`. */
weft_value plugin_product(weft_value x, const char *dim);
/* x / (1 + |x|) */
weft_value plugin_softsign(weft_value x);
/* Sign of a running mean of gradients (Bernstein et al. 2018, "signSGD"). */
weft_value plugin_signum(weft_value loss, const weft_optimizer_options *options);

#ifndef WEFT_NO_HERE /* with the place in the program, as Weft's own builders have it */
#define plugin_product(...)  weft_at("product", WEFT_HERE, plugin_product(__VA_ARGS__))
#define plugin_softsign(...) weft_at("softsign", WEFT_HERE, plugin_softsign(__VA_ARGS__))
#define plugin_signum(...)   weft_at("signum", WEFT_HERE, plugin_signum(__VA_ARGS__))
#endif

#endif
