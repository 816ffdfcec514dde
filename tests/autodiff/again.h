/* again.h: a net with recomputed parts, or without, and the comparison of both. */
#ifndef TEST_AGAIN_H
#define TEST_AGAIN_H

#include <math.h>
#include <string.h>

#include "oracle.h"
#include "test.h"
#include "weft/autodiff.h"
#include "weft/scan.h"

static weft_oracle oracle;
static const weft_dim batch = {"batch", 5}, in = {"in", 6}, hidden = {"hidden", 7};

/* A case's argument: whether its parts are there. */
static const bool with = true, without = false;

static weft_value begin(const weft_oracle_build *b, weft_value x)
{
    return *(const bool *)b->argument ? weft_recompute_begin(x) : x;
}
static weft_value end(const weft_oracle_build *b, weft_value x)
{
    return *(const bool *)b->argument ? weft_recompute_end(x) : x;
}

/* `apart`: as far as numbers may be from each other, of the largest; 0: equal bits. Sums that other ops go into differ in
 * the last digit: on a way back through what is computed again they are of other summands, or in another loop. */
static void check_as(const char *name, void (*build)(weft_oracle_build *), const char *layout,
                     int places, double apart, const weft_compile_options *options)
{
    const weft_oracle_case again = {
        .name = name, .build = build, .argument = &with, .layout = layout, .options = options};
    const weft_oracle_case kept = {
        .name = name, .build = build, .argument = &without, .options = options};
    weft_oracle_result a = {0}, b = {0};
    weft_error error = {0};
    weft_oracle_sweep(&oracle, &again, oracle.world.n_processes > 1 ? places / 8 : places);
    if (CHECK_OK(weft_oracle_run(oracle.alone, &again, NULL, &a, &error), error) &&
        CHECK_OK(weft_oracle_run(oracle.alone, &kept, NULL, &b, &error), error)) {
        CHECK_EQ_INT(a.n_outputs, b.n_outputs);
        for (int i = 0; i < a.n_outputs; i++) {
            double largest = 0.0, found = 0.0;
            CHECK_EQ_INT(a.count[i], b.count[i]);
            for (int64_t k = 0; k < b.count[i]; k++) {
                largest = fmax(largest, fabs(b.data[i][k]));
                found = fmax(found, fabs(a.data[i][k] - b.data[i][k]));
            }
            CHECK(largest > 1e-3);
            CHECK(found <= apart * largest);
        }
    }
    weft_oracle_free(&a);
    weft_oracle_free(&b);
}

static inline void check(const char *name, void (*build)(weft_oracle_build *), const char *layout,
                         int places, double apart)
{
    check_as(name, build, layout, places, apart, NULL);
}

typedef struct net {
    weft_value x, w, u, gain;
} net;

static net net_of(weft_oracle_build *b)
{
    return (net){weft_oracle_input(b, WEFT_F64, WEFT_DIMS(batch, in), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in, hidden), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(hidden, in), -1.0, 1.0),
                 weft_oracle_input(b, WEFT_F64, WEFT_DIMS(in), 0.5, 1.5)};
}

/* Norm, product, dropout, added noise, softmax, product: made of ops that expand, and of random numbers of both kinds. */
static weft_value layer(const net *n, weft_value x)
{
    weft_graph *graph = x.graph;
    const weft_value zero = weft_constant(graph, WEFT_F64, WEFT_DIMS(in), 0.0);
    const weft_value normal = weft_layer_norm(x, n->gain, zero, in);
    const weft_value h =
        weft_gelu(weft_dropout(weft_einsum(WEFT_DIMS(batch, hidden), normal, n->w), 0.3));
    const weft_value noise =
        weft_random_normal(graph, WEFT_F64, WEFT_DIMS(batch, hidden), 0.0, 0.1);
    const weft_value shares = weft_softmax(weft_add(h, weft_exp(noise)), hidden);
    return weft_add(x, weft_einsum(WEFT_DIMS(batch, in), shares, n->u));
}

static void give(weft_oracle_build *b, weft_value loss, const net *n)
{
    weft_value by[4];
    weft_gradients(loss, WEFT_VALUES(n->x, n->w, n->u, n->gain), by, 0);
    weft_oracle_output(b, loss);
    for (int i = 0; i < 4; i++)
        weft_oracle_output(b, by[i]);
}

#endif
