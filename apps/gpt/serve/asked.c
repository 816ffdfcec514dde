/* asked: fields of a request, from one table: what each may be, and what it does. Fields of the protocol that are not served here may be
 * there with the value that changes nothing.
 */
#include "asked.h"

#include <math.h>
#include <string.h>
#include <sys/random.h>

#include "../../json.h"
#include "weft/name.h"

enum { FEW_TOKENS = 16 /* max_tokens, where nobody says, as far as there is room */ };
static const double most_seed = 9007199254740991.0; /* every reader of JSON has it exactly */
static const double most_temperature = 100;

typedef struct reading {
    const gpt_facts_served *facts;
    gpt_request *r;
    bool has_most, has_seed;
} reading;

typedef weft_status (*take)(reading *x, const char *name, const json_t *value, weft_error *error);

static weft_status is_no(const char *name, const char *kind, const json_t *value, weft_error *error)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",
        [JSON_STRING] = "a text",    [JSON_INTEGER] = "a whole number",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null"};
    return weft_fail(error, WEFT_USAGE, "%s is %s; it has to be %s", name,
                     kinds[json_typeof(value)], kind);
}

/* ---- tokens ---------------------------------------------------------------------------------------- */

static weft_status take_ids(reading *x, const char *name, const json_t *list, weft_error *error)
{
    const size_t n = json_array_size(list);
    bpe_tokens *tokens = &x->r->inputs[x->r->n_inputs++];
    if (n > (size_t)x->facts->seq)
        return weft_fail(error, WEFT_USAGE, "%s has %zu tokens; the model has a window of %lld",
                         name, n, (long long)x->facts->seq);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        const json_int_t number = json_integer_value(id);
        if (!json_is_integer(id))
            return is_no(name, "a text, or a list of tokens' numbers", id, error);
        if (number < 0 || number >= x->facts->n_words)
            return weft_fail(error, WEFT_USAGE,
                             "%s has the token %lld; those of the model are 0 to %lld", name,
                             (long long)number, (long long)x->facts->n_words - 1);
        WEFT_TRY(bpe_append(tokens, (int32_t)number, error));
    }
    return WEFT_OK;
}

/* A text that is too long for the window, however few tokens it is, is not encoded. */
static weft_status take_text(reading *x, const char *name, const json_t *text, weft_error *error)
{
    const char *bytes = json_string_value(text);
    const size_t n = json_string_length(text), most = (size_t)x->facts->seq * x->facts->longest;
    bpe_tokens *tokens = &x->r->inputs[x->r->n_inputs++];
    if (n > most)
        return weft_fail(error, WEFT_USAGE,
                         "%s has %zu bytes; the model has a window of %lld tokens, of at most %zu "
                         "bytes each",
                         name, n, (long long)x->facts->seq, x->facts->longest);
    return gpt_encode(x->facts->words, (const unsigned char *)(n > 0 ? bytes : "\n"), n > 0 ? n : 1,
                      tokens, error);
}

static weft_status take_prompt(reading *x, const char *name, const json_t *value, weft_error *error)
{
    if (json_is_string(value)) return take_text(x, name, value, error);
    if (!json_is_array(value))
        return is_no(name, "a text, or a list of tokens' numbers", value, error);
    if (json_array_size(value) == 0 || !json_is_integer(json_array_get(value, 0)))
        return weft_fail(error, WEFT_USAGE,
                         "%s is a list of %s; it is one text, or a list of tokens' numbers: send a "
                         "request for each text",
                         name, json_array_size(value) == 0 ? "nothing" : "something else");
    return take_ids(x, name, value, error);
}

static weft_status take_inputs(reading *x, const char *name, const json_t *value, weft_error *error)
{
    const size_t n = json_array_size(value);
    if (!json_is_array(value) || n == 0 || json_is_integer(json_array_get(value, 0)))
        return take_prompt(x, name, value, error);
    if (n > GPT_MOST_INPUTS)
        return weft_fail(error, WEFT_USAGE, "%s has %zu texts; a request may have %d", name, n,
                         GPT_MOST_INPUTS);
    for (size_t i = 0; i < n; i++)
        WEFT_TRY(take_prompt(x, name, json_array_get(value, i), error));
    return WEFT_OK;
}

/* ---- numbers --------------------------------------------------------------------------------------- */

static weft_status take_count(const char *name, const json_t *value, int64_t low, int64_t high,
                              int64_t *count, weft_error *error)
{
    if (!json_is_integer(value)) return is_no(name, "a whole number", value, error);
    *count = json_integer_value(value);
    if (*count >= low && *count <= high) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%s is %lld; it is from %lld to %lld", name,
                     (long long)*count, (long long)low, (long long)high);
}

static weft_status take_most(reading *x, const char *name, const json_t *value, weft_error *error)
{
    x->has_most = true;
    return take_count(name, value, 1, x->facts->seq, &x->r->most, error);
}

static weft_status take_seed(reading *x, const char *name, const json_t *value, weft_error *error)
{
    int64_t seed = 0;
    x->has_seed = true;
    WEFT_TRY(take_count(name, value, 0, (int64_t)most_seed, &seed, error));
    x->r->drawing.seed = (uint64_t)seed;
    return WEFT_OK;
}

static weft_status take_temperature(reading *x, const char *name, const json_t *value,
                                    weft_error *error)
{
    const double number = json_number_value(value);
    if (!json_is_number(value)) return is_no(name, "a number", value, error);
    if (!(number >= 0 && number <= most_temperature))
        return weft_fail(error, WEFT_USAGE, "%s is %g; it is from 0, the likeliest, to %g", name,
                         number, most_temperature);
    x->r->drawing.temperature = number;
    return WEFT_OK;
}

static weft_status take_logs(reading *x, const char *name, const json_t *value, weft_error *error)
{
    int64_t n = 0;
    WEFT_TRY(take_count(name, value, 0, GPT_MOST_LIKELY, &n, error));
    x->r->n_likely = (int)n;
    return WEFT_OK;
}

/* ---- others ---------------------------------------------------------------------------------------- */

static weft_status take_streams(reading *x, const char *name, const json_t *value,
                                weft_error *error)
{
    if (!json_is_boolean(value)) return is_no(name, "true or false", value, error);
    x->r->base.streams = json_is_true(value);
    return WEFT_OK;
}

static weft_status take_stop(reading *x, const char *name, const json_t *value, weft_error *error)
{
    if (!json_is_string(value)) return is_no(name, "a text, or a list of texts", value, error);
    if (json_string_length(value) == 0)
        return weft_fail(error, WEFT_USAGE,
                         "%s has a text of no letters, which stops nothing; leave "
                         "it out",
                         name);
    return gpt_stops_add(&x->r->stops, json_string_value(value), json_string_length(value), error);
}

static weft_status take_stops(reading *x, const char *name, const json_t *value, weft_error *error)
{
    const size_t n = json_array_size(value);
    if (!json_is_array(value)) return take_stop(x, name, value, error);
    if (n > GPT_MOST_STOPS)
        return weft_fail(error, WEFT_USAGE, "%s has %zu texts; it may have %d", name, n,
                         GPT_MOST_STOPS);
    for (size_t i = 0; i < n; i++)
        WEFT_TRY(take_stop(x, name, json_array_get(value, i), error));
    return WEFT_OK;
}

static weft_status take_format(reading *x, const char *name, const json_t *value, weft_error *error)
{
    const char *text = json_string_value(value);
    if (!text) return is_no(name, "float or base64", value, error);
    if (strcmp(text, "float") != 0 && strcmp(text, "base64") != 0)
        return weft_fail(error, WEFT_USAGE, "%s is \"%.40s\"; it is float or base64", name, text);
    x->r->is_base64 = strcmp(text, "base64") == 0;
    return WEFT_OK;
}

static weft_status take_any(reading *x, const char *name, const json_t *value, weft_error *error)
{
    (void)x;
    return json_is_string(value) ? WEFT_OK : is_no(name, "a text", value, error);
}

static weft_status take_one(reading *x, const char *name, const json_t *value, weft_error *error)
{
    (void)x;
    if (json_is_number(value) && json_number_value(value) == 1) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%s is served as 1 alone; leave it out", name);
}

static weft_status take_zero(reading *x, const char *name, const json_t *value, weft_error *error)
{
    (void)x;
    if (json_is_number(value) && json_number_value(value) == 0) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%s is served as 0 alone; leave it out", name);
}

static weft_status take_none(reading *x, const char *name, const json_t *value, weft_error *error)
{
    (void)x;
    if (json_is_false(value) || (json_is_object(value) && json_object_size(value) == 0))
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE, "%s is not served; leave it out", name);
}

/* ---- the table ------------------------------------------------------------------------------------- */

enum { TEXTS = 1, VECTORS = 2 }; /* whose field it is */
static const struct {
    const char *name;
    int whose;
    take take;
} fields[] = {
    {"prompt", TEXTS, take_prompt},
    {"input", VECTORS, take_inputs},
    {"max_tokens", TEXTS, take_most},
    {"temperature", TEXTS, take_temperature},
    {"seed", TEXTS, take_seed},
    {"stop", TEXTS, take_stops},
    {"stream", TEXTS, take_streams},
    {"logprobs", TEXTS, take_logs},
    {"encoding_format", VECTORS, take_format},
    {"model", TEXTS | VECTORS, take_any},
    {"user", TEXTS | VECTORS, take_any},
    {"n", TEXTS, take_one},
    {"best_of", TEXTS, take_one},
    {"top_p", TEXTS, take_one},
    {"presence_penalty", TEXTS, take_zero},
    {"frequency_penalty", TEXTS, take_zero},
    {"echo", TEXTS, take_none},
    {"suffix", TEXTS, take_none},
    {"logit_bias", TEXTS, take_none},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static weft_status unknown(const char *name, int whose, weft_error *error)
{
    const char *names[N_FIELDS];
    int n = 0;
    for (int i = 0; i < N_FIELDS; i++)
        if (fields[i].whose & whose) names[n++] = fields[i].name;
    const char *near = weft_nearest(name, names, n);
    return weft_fail(error, WEFT_USAGE, "unknown field \"%.60s\"; %s%s%s", name,
                     near ? "did you mean " : "leave it out, or see ",
                     near ? near : "docs/serving.md", near ? "?" : "");
}

/* null is as if it were not there. */
static weft_status take_field(reading *x, const char *name, const json_t *value, weft_error *error)
{
    const int whose = x->r->kind->writes ? TEXTS : VECTORS;
    for (int i = 0; i < N_FIELDS; i++)
        if (strcmp(fields[i].name, name) == 0 && fields[i].whose & whose)
            return json_is_null(value) ? WEFT_OK : fields[i].take(x, name, value, error);
    return unknown(name, whose, error);
}

/* ---- all together ---------------------------------------------------------------------------------- */

/* The last token that is drawn need not go through the model. */
static weft_status check_room(reading *x, weft_error *error)
{
    gpt_request *r = x->r;
    const int64_t n = (int64_t)r->inputs[0].n, seq = x->facts->seq, room = seq - n + 1;
    if (n > seq)
        return weft_fail(error, WEFT_USAGE,
                         "the prompt has %lld tokens; the model has a window of %lld", (long long)n,
                         (long long)seq);
    if (!x->has_most) r->most = room < FEW_TOKENS ? room : FEW_TOKENS;
    if (r->most <= room) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "the prompt has %lld tokens and max_tokens is %lld; in the model's window of "
                     "%lld there is room for %lld",
                     (long long)n, (long long)r->most, (long long)seq, (long long)room);
}

static weft_status check_inputs(const reading *x, weft_error *error)
{
    for (int i = 0; i < x->r->n_inputs; i++)
        if ((int64_t)x->r->inputs[i].n > x->facts->seq)
            return weft_fail(error, WEFT_USAGE,
                             "text %d of the input has %zu tokens; the model has a window of %lld",
                             i + 1, x->r->inputs[i].n, (long long)x->facts->seq);
    return WEFT_OK;
}

static weft_status finish(reading *x, weft_error *error)
{
    gpt_request *r = x->r;
    if (r->n_inputs == 0)
        return weft_fail(error, WEFT_USAGE, "there is no %s; it is the text %s",
                         r->kind->writes ? "prompt" : "input",
                         r->kind->writes ? "that goes on" : "whose vector is wanted");
    if (!r->kind->writes) return check_inputs(x, error);
    uint64_t seed = 0;
    if (!x->has_seed && getrandom(&seed, sizeof seed, 0) == (ssize_t)sizeof seed)
        r->drawing.seed = seed & (uint64_t)most_seed;
    return check_room(x, error);
}

static weft_status fail_json(const json_error_t *wrong, weft_error *error)
{
    WEFT_TRY(app_json_status(error));
    return weft_fail(error, WEFT_USAGE, "the body is no JSON: line %d, column %d: %s", wrong->line,
                     wrong->column, wrong->text);
}

weft_status gpt_asked_read(const void *served, const char *body, size_t n, serve_request *base,
                           weft_error *error)
{
    const gpt_facts_served *facts = served;
    gpt_request *r = (gpt_request *)base;
    reading x = {.facts = facts, .r = r};
    json_error_t wrong;
    const char *name;
    json_t *value, *all = json_loadb(body, n, JSON_REJECT_DUPLICATES, &wrong);
    if (!all) return fail_json(&wrong, error);
    weft_status status = WEFT_OK;
    r->kind = (const gpt_kind *)base->kind;
    r->n_likely = -1;
    r->drawing = (gpt_drawing){.n_words = facts->n_words, .temperature = 1};
    if (!json_is_object(all))
        status = weft_fail(error, WEFT_USAGE,
                           "the body is no object of JSON; it is one, as {\"%s\": \"once upon\"}",
                           r->kind->writes ? "prompt" : "input");
    json_object_foreach(all, name, value)
    {
        if (status == WEFT_OK) status = take_field(&x, name, value, error);
    }
    json_decref(all);
    return status == WEFT_OK ? finish(&x, error) : status;
}
