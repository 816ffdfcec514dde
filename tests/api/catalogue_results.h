/* catalogue_results.h: what comes of a call; and all calls, as catalogue.py writes them. */
#ifndef TEST_CATALOGUE_RESULTS_H
#define TEST_CATALOGUE_RESULTS_H

static void took_weft_device_kind(fixture *f, weft_device_kind device)
{
    (void)f;
    CHECK(weft_devices[device] != NULL);
}

static void took_weft_status(fixture *f, weft_status status)
{
    f->gave_status = true;
    f->status = status;
}
static void took_weft_value(fixture *f, weft_value value)
{
    f->gave_value = true;
    f->value = value;
}
/* Texts are read to their end; numbers can be anything. */
static void took_char_ptr(fixture *f, const char *text)
{
    (void)f;
    if (text != NULL) (void)!write(open("/dev/null", O_WRONLY), text, strlen(text));
}
static void took_text_ptr(fixture *f, char *text)
{
    took_char_ptr(f, text);
    free(text);
}
#define ANY(T, kind)                                                                               \
    static void took_##kind(fixture *f, T result)                                                  \
    {                                                                                              \
        (void)f, (void)result;                                                                     \
    }
ANY(int, int)
ANY(int64_t, int64_t)
ANY(uint64_t, uint64_t)
ANY(uint32_t, uint32_t)
ANY(size_t, size_t)
ANY(double, double)
ANY(bool, bool)
ANY(void *, void_ptr)
ANY(weft_dtype, weft_dtype)
ANY(weft_precision, weft_precision)
ANY(weft_dim, weft_dim)
ANY(weft_initial, weft_initial)
ANY(const weft_shape *, weft_shape_ptr)
ANY(weft_graph *, weft_graph_ptr)
ANY(weft_mesh *, weft_mesh_ptr)
ANY(const weft_layout *, weft_layout_ptr)
ANY(weft_stream *, weft_stream_ptr)
ANY(weft_comm *, weft_comm_ptr)
ANY(weft_arena *, weft_arena_ptr)
ANY(const weft_machine *, weft_machine_ptr)
ANY(const weft_error *, weft_error_ptr)
ANY(const weft_stored_tensor *, weft_stored_tensor_ptr)
ANY(const weft_optimizer *, weft_optimizer_ptr)
ANY(const weft_rank_report *, weft_rank_report_ptr)
ANY(const weft_live_rank *, weft_live_rank_ptr)
ANY(const weft_decision *, weft_decision_ptr)
ANY(const weft_combine_rule *, weft_combine_rule_ptr)
ANY(weft_factor *, weft_factor_ptr)
/* A shape goes into a builder, as shapes do. */
static void took_weft_shape(fixture *f, weft_shape shape)
{
    took_weft_value(f, weft_constant(f->graph, WEFT_F64, shape, 1.0));
}

#pragma GCC diagnostic ignored "-Wformat-security" /* wrong formats are what it is about */
#include "catalogue_calls.inc"

#endif
