/* answer: JSON, by Jansson, as TensorFlow Serving's REST API has it. Numbers that are not finite are null. */
#include <stdlib.h>
#include <string.h>

#include "../../json.h"
#include "../../serve/utf8.h"
#include "served.h"

enum { DIGITS = 17 /* of f64, so that it is that number */, FEW_DIGITS = 9 /* of f32 */ };

static char *dump(json_t *json, size_t digits)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(digits)) : NULL;
    json_decref(json);
    return text;
}

/* ---- outputs -------------------------------------------------------------------------------------- */

static json_t *number_of(const served_tensor *t, int64_t at)
{
    const double number = weft_dtype_get(t->dtype, t->numbers, at);
    return weft_dtype_is_float(t->dtype) ? app_json_number(number)
                                         : json_integer((json_int_t)number);
}

/* Lists in lists of n elements of dim `dim` and all of those behind; *at counts numbers. */
static json_t *lists_of(const served_tensor *t, int dim, int64_t n, int64_t *at)
{
    if (dim == t->shape->n_dims) return number_of(t, (*at)++);
    json_t *list = json_array();
    const int64_t next = dim + 1 < t->shape->n_dims ? t->shape->dims[dim + 1].size : 1;
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, lists_of(t, dim + 1, next, at));
    return list;
}

static int64_t numbers_of(const served_tensor *t, int64_t rows)
{
    return rows * (t->row_bytes / (int64_t)weft_dtype_bytes(t->dtype));
}

/* Of a request's rows, which are n from `first` on; without rows all of it. */
static json_t *tensor_of(const served_tensor *t, int64_t first, int64_t n)
{
    int64_t at = t->has_rows ? numbers_of(t, first) : 0;
    const int64_t size = t->shape->n_dims > 0 ? t->shape->dims[0].size : 1;
    return lists_of(t, 0, t->has_rows ? n : size, &at);
}

json_t *served_row(const served_tensor *t, int64_t row)
{
    int64_t at = numbers_of(t, row);
    return lists_of(t, 1, t->shape->n_dims > 1 ? t->shape->dims[1].size : 1, &at);
}

/* One output is itself, several are an object. */
json_t *served_outputs(const served_facts *f, int64_t first, int64_t n)
{
    if (f->n_outputs == 1)
        return json_pack("{s:o}", "outputs", tensor_of(&f->outputs[0], first, n));
    json_t *all = json_object();
    for (int i = 0; i < f->n_outputs; i++)
        json_object_set_new(all, f->outputs[i].name, tensor_of(&f->outputs[i], first, n));
    return json_pack("{s:o}", "outputs", all);
}

static json_t *prediction_of(const served_facts *f, int64_t row)
{
    if (f->n_outputs == 1) return served_row(&f->outputs[0], row);
    json_t *all = json_object();
    for (int i = 0; i < f->n_outputs; i++)
        json_object_set_new(all, f->outputs[i].name, served_row(&f->outputs[i], row));
    return all;
}

json_t *served_predictions(const served_facts *f, int64_t first, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, prediction_of(f, first + i));
    return json_pack("{s:o}", "predictions", list);
}

static size_t digits_of(const served_facts *f)
{
    size_t digits = FEW_DIGITS;
    for (int i = 0; i < f->n_outputs; i++)
        if (f->outputs[i].dtype == WEFT_F64) digits = DIGITS;
    return digits;
}

char *served_answer(const served_facts *f, const served_request *r, int64_t first)
{
    return dump(r->tells(f, first, r->n_rows), digits_of(f));
}

/* ---- others --------------------------------------------------------------------------------------- */

char *served_refuse(int status, const char *sentence)
{
    char text[3 * sizeof((weft_error *)NULL)->message + 1];
    const size_t n = serve_utf8(sentence, strlen(sentence), text);
    (void)status;
    return dump(json_pack("{s:s%}", "error", text, n), DIGITS);
}

char *served_status(serve_queue *queue, int *status)
{
    (void)status;
    return dump(json_pack("{s:[{s:s, s:s, s:{s:s, s:s}}]}", "model_version_status", "version", "1",
                          "state", queue->is_ending ? "UNLOADING" : "AVAILABLE", "status",
                          "error_code", "OK", "error_message", ""),
                DIGITS);
}

/* TensorFlow's names, by dtypes. */
static const char *const types[WEFT_DTYPES] = {
    [WEFT_F32] = "DT_FLOAT",     [WEFT_F64] = "DT_DOUBLE", [WEFT_I32] = "DT_INT32",
    [WEFT_BF16] = "DT_BFLOAT16", [WEFT_F16] = "DT_HALF",   [WEFT_I64] = "DT_INT64",
    [WEFT_U8] = "DT_UINT8"};

/* A size that a request may choose is -1. */
static json_t *type_of(const served_tensor *t)
{
    json_t *dims = json_array();
    for (int d = 0; d < t->shape->n_dims; d++) {
        char size[24];
        snprintf(size, sizeof size, "%lld",
                 d == 0 && t->has_rows ? -1LL : (long long)t->shape->dims[d].size);
        json_array_append_new(
            dims, json_pack("{s:s, s:s}", "size", size, "name", t->shape->dims[d].name));
    }
    return json_pack("{s:s, s:{s:o, s:b}, s:s}", "dtype", types[t->dtype], "tensor_shape", "dim",
                     dims, "unknown_rank", 0, "name", t->name);
}

static json_t *types_of(const served_tensor *tensors, int n)
{
    json_t *all = json_object();
    for (int i = 0; i < n; i++)
        json_object_set_new(all, tensors[i].name, type_of(&tensors[i]));
    return all;
}

char *served_metadata(serve_queue *queue, int *status)
{
    const served_facts *f = queue->service.served;
    json_t *signature =
        json_pack("{s:o, s:o, s:s}", "inputs", types_of(f->inputs, f->n_inputs), "outputs",
                  types_of(f->outputs, f->n_outputs), "method_name", "tensorflow/serving/predict");
    (void)status;
    return dump(json_pack("{s:{s:s, s:s, s:s}, s:{s:{s:{s:o}}}}", "model_spec", "name", f->name,
                          "signature_name", "", "version", "1", "metadata", "signature_def",
                          "signature_def", "serving_default", signature),
                DIGITS);
}
