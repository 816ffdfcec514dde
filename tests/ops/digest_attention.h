/* digest_attention.h: attention in several versions, as digest_programs.h has every op. */
#ifndef TEST_DIGEST_ATTENTION_H
#define TEST_DIGEST_ATTENTION_H

#include "digest_given.h"

static weft_value emit_attention(const given *p, const weft_op *op, bool is_gradient, int version)
{
    const weft_dim turned[2] = {{"column", 6}, {"row", 4}}, rest = {"rest", 6};
    weft_attention_attributes attributes = {
        .query = version == 1 ? "column" : "row",
        .memory = version == 1   ? "column"
                  : version == 2 ? "rest"
                                 : "row",
        .feature = version == 1 ? "row" : "column",
        .scale = version == 3 ? 0.25 : 0.5,
        .causal = version == 4,
        .window = version == 5 ? 2 : 0,
        .column = version == 6 ? "key" : "rest",
        .bias = version == 7 || version == 9 ? 3 : 0,
        .mask = version == 8 ? 3 : 0,
        .bias_gradient = version == 9,
    };
    weft_value in[WEFT_MAX_IN] = {p->x, p->y, p->x, p->y};
    int n_in = 3;
    if (version == 1)
        for (int i = 0; i < 4; i++)
            in[i] = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(turned[0], turned[1]), i);
    if (version == 2)
        for (int i = 1; i < 3; i++)
            in[i] = weft_rename(in[i], row, rest);
    const weft_value dy = in[3];
    if (attributes.bias > 0) in[n_in++] = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(rest), 0.5);
    if (attributes.mask > 0) in[n_in++] = weft_constant(p->graph, WEFT_I32, WEFT_DIMS(rest), 1.0);
    if (is_gradient) {
        const weft_dim rows = version == 1 ? turned[0] : row, two = {attributes.feature, 2};
        in[n_in++] = dy;
        in[n_in++] = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(two, rows), 1.0);
        in[n_in++] = dy;
    }
    return weft_emit(p->graph, op, in, n_in, &attributes, sizeof attributes);
}
static weft_value attention(const given *p, int version)
{
    return emit_attention(p, &weft_op_attention, false, version);
}
static weft_value attention_grad(const given *p, int version)
{
    return emit_attention(p, &weft_op_attention_grad, true, version);
}

/* Of blocks of rows; each version has another of the fields that say which go with which. */
static weft_value emit_blocks(const given *p, const weft_op *op, bool is_gradient, int version)
{
    const weft_dim blocks = {"blocks", version == 2 ? 3 : 2};
    const weft_dim others = {version == 1   ? "others"
                             : version == 3 ? "turned"
                                            : "blocks",
                             blocks.size},
                   own = {version == 3 ? "turned" : "blocks", blocks.size};
    const weft_attention_attributes attributes = {.query = "row",
                                                  .memory = "row",
                                                  .feature = "column",
                                                  .column = "row",
                                                  .scale = 0.5,
                                                  .blocks = own.name,
                                                  .memory_blocks = others.name,
                                                  .n_blocks = blocks.size,
                                                  .turn = version == 4,
                                                  .query_first = version == 5 ? 3 : 0,
                                                  .query_step = version == 6 ? -1 : 1,
                                                  .memory_first = version == 7 ? 3 : 0,
                                                  .memory_step = version == 8 ? -1 : 1,
                                                  .memory_end = version == 9 ? 3 : 0,
                                                  .mask = 3,
                                                  .column_blocks = version == 10   ? "far"
                                                                   : version == 11 ? "near"
                                                                                   : NULL};
    weft_value q = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(own, row, column), 0.5),
               k = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(others, row, column), 0.25);
    const weft_dim two = {"column", 2};
    weft_value sums = weft_constant(p->graph, WEFT_F64, WEFT_DIMS(two, own, row), 1.0);
    weft_value mask = weft_constant(p->graph, WEFT_I32, WEFT_DIMS(own), 1.0);
    const weft_value in[] = {q, k, k, mask, q, sums, q};
    return weft_emit(p->graph, op, in, is_gradient ? 7 : 4, &attributes, sizeof attributes);
}
static weft_value attention_blocks(const given *p, int version)
{
    return emit_blocks(p, &weft_op_attention, false, version);
}
static weft_value attention_grad_blocks(const given *p, int version)
{
    return emit_blocks(p, &weft_op_attention_grad, true, version);
}

#endif
