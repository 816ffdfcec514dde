/* gather, pick and scatter_add against the definition, element by element; ids outside the box
 * included. */
#include "kernel_views.h"
#include "weft/extend/half.h"

extern const weft_kernel weft_kernel_gather, weft_kernel_pick;

static weft_view random_ids(int n, const part *parts, int64_t size)
{
    weft_view ids = view_of(WEFT_I32, n, parts);
    for (int64_t i = 0; i < weft_view_count(&ids); i++)
        view_set(&ids, i, random_below((int)size + 4) - 2);
    return ids;
}

/* Index into `view` of the element whose coordinates are those of element i of `like`, except
 * `along` at `id`; names that `like` lacks do not occur. -1: not held. */
static int64_t matching(const weft_view *view, const weft_view *like, int64_t i, const char *along,
                        int64_t id)
{
    int64_t at_like[WEFT_MAX_DIMS] = {0}, at[WEFT_MAX_DIMS] = {0};
    view_at(like, i, at_like);
    for (int d = 0; d < view->shape.n_dims; d++) {
        const char *name = view->shape.dims[d].name;
        if (along != NULL && strcmp(name, along) == 0) {
            if (id < view->box.begin[d] || id >= view->box.end[d]) return -1;
            at[d] = id - view->box.begin[d];
        } else {
            at[d] = at_like[weft_shape_find(&like->shape, name)];
        }
    }
    return view_index(view, at);
}

static void check_gather(const weft_kernel *kernel, weft_call *call,
                         const weft_dim_attributes *attributes)
{
    const weft_view *table = &call->in[0], *ids = &call->in[1], *out = &call->out[0];
    call->attributes = attributes;
    CHECK(kernel->takes(call));
    call->scratch = malloc((size_t)kernel->scratch(call) + 1);
    if (call->scratch == NULL) exit(2);
    run_on_lanes(kernel->launch, call);
    for (int64_t i = 0; i < weft_view_count(out); i++) {
        const int64_t id = (int64_t)view_get(ids, matching(ids, out, i, NULL, 0));
        const int64_t from = matching(table, out, i, attributes->dim, id);
        const double x = from < 0 ? 0 : view_get(table, from);
        CHECK(view_get(out, i) ==
              (out->dtype == WEFT_BF16 ? (double)weft_bf16_round((float)x) : x));
    }
    free(call->scratch);
    call_free(call);
}

static void test_gather_reads_the_rows_it_holds(void)
{
    for (int i = 0; i < 150; i++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
            const part vocab = random_part("vocab", 40), batch = random_part("batch", 9),
                       seq = random_part("seq", 9);
            const part embed = random_part("embed", 200), extra = random_part("extra", 3);
            weft_call call = {.n_in = 2, .n_out = 1};
            const part tables[3][3] = {
                {vocab, embed, extra}, {embed, vocab, extra}, {embed, extra, vocab}};
            call.in[0] = view_of((weft_dtype)dtype, 3, tables[i % 3]);
            call.in[1] = random_ids(2, (part[]){batch, seq}, vocab.size);
            call.out[0] = view_of((weft_dtype)dtype, 4, (part[]){batch, seq, embed, extra});
            check_gather(&weft_kernel_gather, &call, &(weft_dim_attributes){"vocab", vocab.size});
        }
}

static void test_pick_takes_one_element_of_each_row(void)
{
    for (int i = 0; i < 150; i++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
            const part vocab = random_part("vocab", 40), batch = random_part("batch", 9),
                       seq = random_part("seq", 9);
            weft_call call = {.n_in = 2, .n_out = 1};
            const part tables[3][3] = {
                {vocab, batch, seq}, {batch, vocab, seq}, {seq, batch, vocab}};
            call.in[0] = view_of((weft_dtype)dtype, 3, tables[i % 3]);
            call.in[1] =
                random_ids(2, i % 2 ? (part[]){batch, seq} : (part[]){seq, batch}, vocab.size);
            call.out[0] = view_of((weft_dtype)dtype, 2, (part[]){batch, seq});
            check_gather(&weft_kernel_pick, &call, &(weft_dim_attributes){"vocab", vocab.size});
        }
}

/* Of vocab a rank may hold a part: ids of a row point inside of it, outside, or both. */
static void test_pick_takes_several_elements_of_each_row(void)
{
    for (int i = 0; i < 150; i++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
            const part vocab = random_part("vocab", 40), batch = random_part("batch", 9),
                       some = random_part("some", 70);
            weft_call call = {.n_in = 2, .n_out = 1};
            call.in[0] = view_of((weft_dtype)dtype, 2, (part[]){batch, vocab});
            call.in[1] = random_ids(2, (part[]){batch, some}, vocab.size);
            call.out[0] = view_of((weft_dtype)dtype, 2, (part[]){batch, some});
            check_gather(&weft_kernel_pick, &call, &(weft_dim_attributes){"vocab", vocab.size});
        }
}

static void test_another_dtype_comes_out(void)
{
    static const weft_dtype dtypes[2][2] = {{WEFT_F32, WEFT_BF16}, {WEFT_BF16, WEFT_F32}};
    for (int i = 0; i < 100; i++) {
        const part vocab = random_part("vocab", 40), batch = random_part("batch", 9),
                   seq = random_part("seq", 9), embed = random_part("embed", 200);
        const weft_dim_attributes attributes = {"vocab", vocab.size};
        const weft_dtype from = dtypes[i % 2][0], to = dtypes[i % 2][1];
        weft_call rows = {.n_in = 2, .n_out = 1}, elements = rows;
        rows.in[0] = view_of(from, 2, (part[]){vocab, embed});
        rows.in[1] = random_ids(2, (part[]){batch, seq}, vocab.size);
        rows.out[0] = view_of(to, 3, (part[]){batch, seq, embed});
        check_gather(&weft_kernel_gather, &rows, &attributes);
        elements.in[0] = view_of(from, 3, (part[]){batch, vocab, seq});
        elements.in[1] = random_ids(2, (part[]){batch, seq}, vocab.size);
        elements.out[0] = view_of(to, 2, (part[]){batch, seq});
        check_gather(&weft_kernel_pick, &elements, &attributes);
    }
}

/* out is the sum so far, where there is one, and the rows of each id. */
static void check_sums(const weft_call *call)
{
    const weft_view *rows = &call->in[0], *ids = &call->in[1], *out = &call->out[0];
    const weft_dim_attributes *attributes = call->attributes;
    double *sum = calloc((size_t)weft_view_count(out) + 1, sizeof *sum);
    if (!CHECK(sum != NULL)) return;
    for (int64_t o = 0; o < weft_view_count(out) && call->accumulates; o++)
        sum[o] = view_get(&call->in[2], o);
    for (int64_t i = 0; i < weft_view_count(rows); i++) {
        const int64_t id = (int64_t)view_get(ids, matching(ids, rows, i, NULL, 0));
        const int64_t to = matching(out, rows, i, attributes->dim, id);
        if (to >= 0) sum[to] += view_get(rows, i);
    }
    for (int64_t o = 0; o < weft_view_count(out); o++)
        CHECK(fabs(view_get(out, o) - sum[o]) < (out->dtype == WEFT_F32 ? 1e-4 : 1e-12));
    free(sum);
}

/* Begun with a sum so far, in memory of its own, and then where that lies: the same bits. */
static void check_begun(weft_call *call)
{
    weft_call begun = *call;
    begun.accumulates = true;
    begun.n_in = 3;
    begun.in[2] = call->out[0];
    view_take(&begun.in[2], call->out[0].dtype);
    view_randomize(&begun.in[2]);
    weft_view kept = view_like(&begun.in[2]);
    memcpy(kept.data, begun.in[2].data,
           (size_t)weft_view_count(&kept) * weft_dtype_bytes(kept.dtype));
    run_on_lanes(weft_scatter_add_cpu, &begun);
    CHECK(view_same_bits(&begun.in[2], &kept));
    check_sums(&begun);
    weft_call over = begun;
    over.out[0] = kept;
    over.in[2].data = kept.data;
    weft_scatter_add_cpu(&over);
    CHECK(view_same_bits(&over.out[0], &begun.out[0]));
    view_free(&kept);
    view_free(&begun.in[2]);
}

static void check_scatter(weft_call *call, const weft_dim_attributes *attributes)
{
    call->attributes = attributes;
    run_on_lanes(weft_scatter_add_cpu, call);
    check_sums(call);
    check_begun(call);
    call_free(call);
}

static void test_scatter_add_sums_rows_of_one_id(void)
{
    for (int i = 0; i < 150; i++)
        for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
            if (weft_dtype_computes((weft_dtype)dtype) != (weft_dtype)dtype) continue;
            const part vocab = random_part("vocab", 12), batch = random_part("batch", 20),
                       seq = random_part("seq", 20);
            const part embed = random_part("embed", i % 2 ? 300 : 6),
                       extra = random_part("extra", 3);
            weft_call call = {.n_in = 2, .n_out = 1};
            const part rows[2][4] = {{batch, seq, extra, embed}, {embed, batch, seq, extra}};
            call.in[0] = view_of((weft_dtype)dtype, 4, rows[i % 4 == 3]);
            call.in[1] = random_ids(2, (part[]){batch, seq}, vocab.size);
            call.out[0] = view_of((weft_dtype)dtype, 3, (part[]){vocab, extra, embed});
            check_scatter(&call, &(weft_dim_attributes){"vocab", vocab.size});
        }
}

static void check_large_table(int64_t n_ids)
{
    const part vocab = {"vocab", 3100, 50, 3051}, batch = {"batch", n_ids, 0, n_ids},
               embed = {"embed", 67, 0, 67};
    for (int dtype = 0; dtype < WEFT_DTYPES; dtype++) {
        if (weft_dtype_computes((weft_dtype)dtype) != (weft_dtype)dtype) continue;
        weft_call call = {.n_in = 2, .n_out = 1};
        call.in[0] = view_of((weft_dtype)dtype, 2, (part[]){batch, embed});
        call.in[1] = random_ids(1, &batch, vocab.size);
        call.out[0] = view_of((weft_dtype)dtype, 2, (part[]){vocab, embed});
        check_scatter(&call, &(weft_dim_attributes){"vocab", vocab.size});
    }
}

/* So large that lanes clear it together, and its last piece is not a whole one. */
static void test_scatter_add_to_a_large_table(void)
{
    check_large_table(40);
}

/* So many ids that lanes share them out by the rows that they point to, and list them in more than one list. */
static void test_scatter_add_of_many_rows_to_a_large_table(void)
{
    check_large_table(2500);
}

static void test_empty_boxes(void)
{
    const part none = {"vocab", 7, 7, 7}, batch = {"batch", 3, 0, 3}, embed = {"embed", 5, 0, 5};
    const part nobody = {"batch", 3, 3, 3};
    weft_call call = {.n_in = 2, .n_out = 1};
    call.in[0] = view_of(WEFT_F32, 2, (part[]){none, embed});
    call.in[1] = random_ids(1, &batch, 7);
    call.out[0] = view_of(WEFT_F32, 2, (part[]){batch, embed});
    check_gather(&weft_kernel_gather, &call, &(weft_dim_attributes){"vocab", 7});
    weft_call scatter = {.n_in = 2, .n_out = 1};
    scatter.in[0] = view_of(WEFT_F32, 2, (part[]){nobody, embed});
    scatter.in[1] = random_ids(1, &nobody, 7);
    scatter.out[0] = view_of(WEFT_F32, 2, (part[]){{"vocab", 7, 0, 7}, embed});
    check_scatter(&scatter, &(weft_dim_attributes){"vocab", 7});
}

int main(void)
{
    if (!streams_open()) return 1;
    RUN(test_gather_reads_the_rows_it_holds);
    RUN(test_pick_takes_one_element_of_each_row);
    RUN(test_pick_takes_several_elements_of_each_row);
    RUN(test_another_dtype_comes_out);
    RUN(test_scatter_add_sums_rows_of_one_id);
    RUN(test_scatter_add_to_a_large_table);
    RUN(test_scatter_add_of_many_rows_to_a_large_table);
    RUN(test_empty_boxes);
    streams_close();
    return weft_test_report();
}
