/* tables.h: the plug-in's tables, for register.c and the oracle. */
#ifndef TABLES_H
#define TABLES_H

#define WEFT_NO_HERE /* a builder made of others stands where its caller does */
#include <weft/extend/combine.h>
#include <weft/extend/op.h>
#include <weft/extend/optimizer.h>

#include "plugin.h"

extern const weft_op plugin_op_softsign, plugin_op_product;
extern const weft_kernel plugin_kernel_product;
extern const weft_combine_rule plugin_combine_product;
extern weft_combine plugin_product_kind;
extern const weft_optimizer_rule plugin_rule_signum;

#endif
