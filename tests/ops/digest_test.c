/* RANKS: 2 */
/* digest_test: two programs that differ anywhere have two digests, and ranks that compiled them are told so.
 *
 * One table of programs in several versions, each of which differs from the first in one thing. Every field of every op's
 * attributes must differ in some version of some program, or the test fails: who adds an op, or a field, adds a version.
 * Alone, the digests are compared; under MPI, rank 1 compiles another version than rank 0 and both get the sentence.
 */
#include "digest_programs.h"

#include "weft/collectives.h"
#include "weft/program.h"

#include <stdlib.h>

#include "test.h"

static weft_world world;
static weft_mesh *mesh;

/* ---- what is no attribute of an op ----------------------------------------------------------- */

static weft_value names(const given *p, int version)
{
    return weft_name(weft_neg(p->x), version == 1 ? "b" : "a");
}
static weft_value placements(const given *p, int version)
{
    return weft_place(weft_neg(p->x), version == 1 ? "row:data" : "");
}
static weft_value placed_as(const given *p, int version)
{
    return weft_place_as(weft_neg(p->x), version == 1 ? p->y : p->x);
}
static weft_value operands(const given *p, int version)
{
    return weft_sub(p->x, version == 1 ? p->x : p->y);
}
static weft_value seeds(const given *p, int version)
{
    (void)version; /* the graph is made with another one */
    return p->x;
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct program {
    const char *name;
    weft_value (*build)(const given *p, int version);
    int n_versions;
    const weft_op *op; /* NULL: not about an op; build NULL: an element op */
} program;

static const program programs[] = {
    {"names", names, 2, NULL},
    {"placements", placements, 2, NULL},
    {"placed_as", placed_as, 2, NULL},
    {"operands", operands, 2, NULL},
    {"seeds", seeds, 2, NULL},
#define OP(op, build, n_versions)                                                                  \
    {                                                                                              \
#op, build, n_versions, &weft_op_##op                                                      \
    }
    OP(input, input, 7),
    OP(variable, variable, 7),
    OP(scan_trip, scanned, 5),
    OP(scan_carry, scanned, 5),
    OP(scan_next, scanned, 5),
    OP(scan_guard, scanned, 6),
    OP(scan_each, scanned, 5),
    OP(scan_last, scanned, 5),
    OP(scan_stack, scanned, 5),
    OP(constant, constant, 11),
    OP(iota, iota, 11),
    OP(run_number, run_number, 11),
    OP(random_uniform, random_uniform, 11),
    OP(random_normal, random_normal, 11),
    OP(cast, cast, 2),
    OP(broadcast, broadcast, 2),
    OP(einsum, einsum, 2),
    OP(transpose, transpose, 2),
    OP(reshape, reshape, 2),
    OP(rename, rename_, 4),
    OP(slice, slice, 5),
    OP(reindex, reindex, 8),
    OP(conv, conv, 11),
    OP(cumsum, cumsum, 6),
    OP(cumprod, cumprod, 6),
    OP(cummax, cummax, 6),
    OP(max_pool, max_pool, 10),
    OP(unpool, unpool, 10),
    OP(pool_pick, pool_pick, 10),
    OP(concat, concat, 4),
    OP(sum, sum, 4),
    OP(reduce_max, reduce_max, 4),
    OP(reduce_prod, reduce_prod, 4),
    OP(lse_state, lse_state, 4),
    OP(argmax_state, argmax_state, 4),
    OP(moments_state, moments_state, 4),
    OP(moments_finish, moments_finish, 2),
    OP(norm_stats, norm_stats, 3),
    OP(normalized, normalized, 2),
    OP(normalizer, logsumexp, 2),
    OP(argmax, argmax, 2),
    OP(gather, gather, 2),
    OP(scatter_add, scatter_add, 2),
    OP(scatter_max, scatter_max, 2),
    OP(order, order, 6),
    OP(in_order, in_order, 6),
    OP(require, require, 2),
    OP(cholesky, cholesky, 3),
    OP(triangular_solve, triangular_solve, 4),
    OP(solve, solve, 3),
    OP(pick, pick, 2),
    OP(pick_product, pick_product, 3),
    OP(unpick_product, unpick_product, 3),
    OP(unpick, unpick, 4),
    OP(attention, attention, 10),
    OP(attention, attention_blocks,
       12), /* blocks: memory_blocks, n_blocks, both names, turn, first, step, memory_end, column_blocks */
    OP(attention_grad, attention_grad, 10),
    OP(attention_grad, attention_grad_blocks, 12),
};
enum { N_PROGRAMS = sizeof programs / sizeof programs[0] };

/* Program i: of the table, then one for each element op. */
static bool program_at(int i, program *out)
{
    if (i < N_PROGRAMS) {
        *out = programs[i];
        return true;
    }
    for (int k = 0, at = N_PROGRAMS; k < weft_n_ops; k++) {
        if (weft_op_attributes(weft_ops[k]) != &weft_attributes_element || at++ != i) continue;
        *out = (program){weft_ops[k]->name, NULL, 9, weft_ops[k]};
        return true;
    }
    return false;
}

static given build(const program *p, int version, weft_value *out)
{
    const given g = give(p->build == seeds ? 1 + (uint64_t)version : 1);
    *out = p->build != NULL ? p->build(&g, version) : emit_element(&g, p->op, version);
    return g;
}

/* A check that says which program and version failed. */
static bool check(bool passed, int line, const program *p, int version, const char *what)
{
    char text[700];
    snprintf(text, sizeof text, "%s, version %d: %s", p->name, version, what);
    return weft_test_check(passed, __FILE__, line, text);
}

/* ---- every field is in the table ------------------------------------------------------------- */

static char *field_text(const weft_graph *graph, const weft_op *op, const weft_field *field)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    for (uint32_t n = 1; n < graph->n_nodes; n++)
        if (graph->nodes[n].op == op)
            field->kind->print((const char *)graph->nodes[n].attributes + field->offset, file);
    fclose(file);
    return text;
}

/* Whether some version of the program has another value there than version 0. */
static bool varies(const program *p, const weft_field *field)
{
    bool found = false;
    for (int version = 1; version < p->n_versions && !found; version++) {
        weft_value out;
        given one = build(p, 0, &out), other = build(p, version, &out);
        char *a = field_text(one.graph, p->op, field), *b = field_text(other.graph, p->op, field);
        found = strcmp(a, b) != 0;
        free(a);
        free(b);
        weft_graph_destroy(&one.graph);
        weft_graph_destroy(&other.graph);
    }
    return found;
}

static void test_every_field_of_every_op_varies(void)
{
    for (int i = 0; i < weft_n_ops; i++) {
        const weft_attributes *described = weft_op_attributes(weft_ops[i]);
        for (int f = 0; described != NULL && f < described->n_fields; f++) {
            program p;
            bool found = false;
            for (int k = 0; program_at(k, &p) && !found; k++)
                found = p.op == weft_ops[i] && varies(&p, &described->fields[f]);
            char text[160];
            snprintf(text, sizeof text, "%s: no version has another %s", weft_ops[i]->name,
                     described->fields[f].name);
            weft_test_check(found, __FILE__, __LINE__, text);
        }
    }
}

/* ---- digests, and ranks that differ ---------------------------------------------------------- */

static weft_status compile(const program *p, int version, uint64_t *digest, weft_error *error)
{
    weft_value out;
    weft_program *compiled = NULL;
    given g = build(p, version, &out);
    *error = (weft_error){0};
    weft_status status = weft_compile(mesh, NULL, WEFT_VALUES(out), NULL, &compiled, error);
    *digest = compiled != NULL ? weft_program_digest(compiled) : 0;
    weft_program_destroy(&compiled);
    weft_graph_destroy(&g.graph);
    return status;
}

static void test_versions_have_digests_of_their_own(void)
{
    weft_error error;
    program p;
    for (int i = 0; program_at(i, &p); i++) {
        uint64_t first = 0, again = 0, other = 0;
        check(compile(&p, 0, &first, &error) == WEFT_OK, __LINE__, &p, 0, error.message);
        check(compile(&p, 0, &again, &error) == WEFT_OK, __LINE__, &p, 0, error.message);
        check(first == again && first != 0, __LINE__, &p, 0, "built twice, one digest");
        for (int version = 1; version < p.n_versions; version++) {
            check(compile(&p, version, &other, &error) == WEFT_OK, __LINE__, &p, version,
                  error.message);
            check(other != first, __LINE__, &p, version, "a digest of its own");
        }
    }
}

static void test_a_rank_with_another_version_is_named(void)
{
    weft_error error;
    program p;
    uint64_t digest;
    for (int i = 0; program_at(i, &p); i++) {
        check(compile(&p, 0, &digest, &error) == WEFT_OK, __LINE__, &p, 0, error.message);
        for (int version = 1; version < p.n_versions; version++) {
            const int own = weft_mesh_first_local(mesh) == 1 ? version : 0;
            const weft_status status = compile(&p, own, &digest, &error);
            check(status == WEFT_MISMATCH, __LINE__, &p, version, error.message);
            check(strstr(error.message, "rank 1 compiled another program than rank 0") != NULL,
                  __LINE__, &p, version, error.message);
        }
    }
}

int main(void)
{
    weft_error error = {0};
    if (CHECK_OK(weft_world_open(&world, &error), error) &&
        CHECK_OK(weft_mesh_create(&world, "data:2", &mesh, &error), error)) {
        RUN(test_every_field_of_every_op_varies);
        if (world.n_processes == 1)
            RUN(test_versions_have_digests_of_their_own);
        else
            RUN(test_a_rank_with_another_version_is_named);
    }
    weft_mesh_destroy(&mesh);
    weft_world_close();
    return weft_test_report();
}
