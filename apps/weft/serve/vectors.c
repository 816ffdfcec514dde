/* vectors: /v1/embeddings of OpenAI's protocol, by a program that makes a vector of each row of ids. It has no vocabulary: inputs are the
 * numbers of tokens, as many as the program takes.
 */
#include <string.h>

#include "../../json.h"
#include "../../serve/refusal.h"
#include "served.h"
#include "weft/name.h"

static weft_status take_input(const served_facts *f, served_request *r, json_t *input,
                              weft_error *error)
{
    if (json_is_array(input) && json_is_array(json_array_get(input, 0)))
        return served_take_rows(f, r, "input", input, error);
    if (!json_is_array(input) || !json_is_number(json_array_get(input, 0)))
        return weft_fail(error, WEFT_USAGE,
                         "input is %s%s; it is a list of %lld tokens' numbers, or several such "
                         "lists: a saved program has no vocabulary",
                         served_kind_of(input), json_is_array(input) ? " of something else" : "",
                         (long long)f->inputs[0].shape->dims[1].size);
    json_t *list = json_pack("[O]", input);
    const weft_status status =
        list ? served_take_rows(f, r, "input", list, error) : weft_fail_memory(error, 0);
    json_decref(list);
    return status;
}

static weft_status take_format(const served_facts *f, served_request *r, json_t *value,
                               weft_error *error)
{
    (void)f, (void)r;
    const char *text = json_string_value(value);
    if (text && strcmp(text, "float") == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "encoding_format is served as \"float\" alone; leave it out");
}

static weft_status take_any(const served_facts *f, served_request *r, json_t *value,
                            weft_error *error)
{
    (void)f, (void)r, (void)value, (void)error;
    return WEFT_OK;
}

static const struct {
    const char *name;
    weft_status (*take)(const served_facts *f, served_request *r, json_t *value, weft_error *error);
} fields[] = {{"input", take_input},
              {"encoding_format", take_format},
              {"model", take_any},
              {"user", take_any}};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static weft_status take_field(const served_facts *f, served_request *r, const char *name,
                              json_t *value, weft_error *error)
{
    const char *names[N_FIELDS];
    for (int i = 0; i < N_FIELDS; i++) {
        names[i] = fields[i].name;
        if (strcmp(name, names[i]) == 0) return fields[i].take(f, r, value, error);
    }
    const char *near = weft_nearest(name, names, N_FIELDS);
    return weft_fail(error, WEFT_USAGE, "unknown field \"%.60s\"; %s%s%s", name,
                     near ? "did you mean " : "leave it out, or see ",
                     near ? near : "docs/serving.md", near ? "?" : "");
}

static weft_status read_vectors(const void *facts, const char *body, size_t n, serve_request *base,
                                weft_error *error)
{
    served_request *r = (served_request *)base;
    const char *name;
    json_t *value, *all;
    weft_status status = WEFT_OK;
    r->tells = served_vectors;
    WEFT_TRY(served_parse(body, n, "{\"input\": [1, 2, 3]}", &all, error));
    json_object_foreach(all, name, value)
    {
        if (status == WEFT_OK) status = take_field(facts, r, name, value, error);
    }
    if (status == WEFT_OK && json_object_get(all, "input") == NULL)
        status = weft_fail(error, WEFT_USAGE,
                           "there is no input; it is the tokens whose vector is wanted");
    json_decref(all);
    return status;
}

json_t *served_vectors(const served_facts *f, int64_t first, int64_t n)
{
    json_t *data = json_array();
    const json_int_t tokens = n * f->inputs[0].shape->dims[1].size;
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(data, json_pack("{s:s, s:I, s:o}", "object", "embedding", "index",
                                              (json_int_t)i, "embedding",
                                              served_row(&f->outputs[0], first + i)));
    return json_pack("{s:s, s:o, s:s, s:{s:I, s:I}}", "object", "list", "data", data, "model",
                     f->name, "usage", "prompt_tokens", tokens, "total_tokens", tokens);
}

const serve_kind served_vectors_kind = {sizeof(served_request), read_vectors, served_drop,
                                        serve_refusal};
