/* answer: JSON, by Jansson. Texts are bytes of tokens, and what of them is no UTF-8 is told as U+FFFD. */
#include "answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../json.h"
#include "../../serve/refusal.h"
#include "../../serve/utf8.h"

enum { DIGITS = 17 /* of a number, so that it is that number */, VECTOR_DIGITS = 9 };

static char *dump(json_t *json, size_t digits)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(digits)) : NULL;
    json_decref(json);
    return text;
}

/* ---- parts of a stream ------------------------------------------------------------------------------ */

static char *event(char *json, const char *behind)
{
    char *text = NULL;
    if (json && asprintf(&text, "data: %s\n\n%s", json, behind) < 0) text = NULL;
    free(json);
    return text;
}

static const char stream_end[] = "data: [DONE]\n\n";

char *gpt_answer_failure(int status, const char *sentence)
{
    return event(serve_refusal(status, sentence), stream_end);
}

/* ---- texts ----------------------------------------------------------------------------------------- */

static json_t *text_of(const char *bytes, size_t n)
{
    char *text = malloc(3 * n + 1);
    json_t *json = text ? json_stringn(text, serve_utf8(bytes, n, text)) : NULL;
    free(text);
    return json;
}

static json_t *word_of(const gpt_facts_served *facts, int32_t token)
{
    size_t n = 1;
    const char byte = (char)token;
    const char *bytes = facts->words ? (const char *)bpe_word(facts->words, token, &n) : &byte;
    return text_of(bytes, n);
}

/* {" the": -0.1, ..}, the likeliest first; two words of the same letters are one name, of the likelier. */
static json_t *likely_of(const gpt_facts_served *facts, const gpt_told_token *t)
{
    json_t *all = json_object();
    for (int i = 0; i < t->n_likely; i++) {
        json_t *word = word_of(facts, t->likely[i]);
        const char *name = word ? json_string_value(word) : NULL;
        const size_t n = json_string_length(word);
        if (name && !json_object_getn(all, name, n))
            json_object_setn_new(all, name, n, app_json_number(t->logs[i]));
        json_decref(word);
    }
    return all;
}

static json_t *logs_of(const gpt_facts_served *facts, const gpt_request *r)
{
    if (r->n_likely < 0) return json_null();
    json_t *words = json_array(), *logs = json_array(), *likely = json_array(), *ids = json_array();
    for (size_t i = 0; i < r->n_told; i++) {
        json_array_append_new(ids, json_integer(r->told[i].id));
        json_array_append_new(words, word_of(facts, r->told[i].id));
        json_array_append_new(logs, app_json_number(r->told[i].log));
        json_array_append_new(likely, likely_of(facts, &r->told[i]));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", words, "token_logprobs", logs,
                     "top_logprobs", likely, "token_ids", ids);
}

static json_t *object_of(const gpt_facts_served *facts, const gpt_request *r, json_t *text,
                         const char *why)
{
    char id[40];
    snprintf(id, sizeof id, "cmpl-%lld", (long long)r->base.number);
    return json_pack("{s:s, s:s, s:I, s:s, s:I, s:[{s:i, s:o, s:o, s:s?}]}", "id", id, "object",
                     r->kind->object, "created", (json_int_t)time(NULL), "model", facts->model,
                     "seed", (json_int_t)r->drawing.seed, "choices", "index", 0, "text", text,
                     "logprobs", logs_of(facts, r), "finish_reason", why);
}

static json_t *usage_of(const gpt_request *r)
{
    const json_int_t read = gpt_request_n_inputs(r), written = r->n_words;
    return json_pack("{s:I, s:I, s:I}", "prompt_tokens", read, "completion_tokens", written,
                     "total_tokens", read + written);
}

char *gpt_answer_part(const gpt_facts_served *facts, const gpt_request *r, size_t n,
                      const char *why)
{
    json_t *text = text_of(r->tail.bytes + r->tail.told, n);
    json_t *all = text ? object_of(facts, r, text, why) : NULL;
    if (why) json_object_set_new(all, "usage", usage_of(r));
    return event(dump(all, DIGITS), why ? stream_end : "");
}

char *gpt_answer_text(const gpt_facts_served *facts, const gpt_request *r, const char *why)
{
    json_t *text = text_of(r->tail.bytes, r->tail.n);
    json_t *all = text ? object_of(facts, r, text, why) : NULL;
    json_object_set_new(all, "usage", usage_of(r));
    return dump(all, DIGITS);
}

/* ---- vectors --------------------------------------------------------------------------------------- */

/* source  RFC 4648, section 4 */
static char *base64(const unsigned char *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc(4 * ((n + 2) / 3) + 1), *to = text;
    for (size_t i = 0; text && i < n; i += 3) {
        const size_t left = n - i;
        const unsigned bits = (unsigned)bytes[i] << 16 |
                              (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                              (left > 2 ? bytes[i + 2] : 0);
        *to++ = digits[bits >> 18];
        *to++ = digits[bits >> 12 & 63];
        *to++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[bits & 63] : '=';
    }
    if (text) *to = '\0';
    return text;
}

static json_t *vector_of(const gpt_facts_served *facts, const gpt_request *r, int input)
{
    const float *numbers = r->vectors + (size_t)input * (size_t)facts->width;
    if (r->is_base64) { /* of f32, the least byte first */
        char *text = base64((const unsigned char *)numbers, (size_t)facts->width * sizeof *numbers);
        json_t *json = text ? json_string(text) : NULL;
        free(text);
        return json;
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < facts->width; i++)
        json_array_append_new(list, app_json_number((double)numbers[i]));
    return list;
}

char *gpt_answer_vectors(const gpt_facts_served *facts, const gpt_request *r)
{
    json_t *data = json_array();
    const json_int_t n = gpt_request_n_inputs(r);
    for (int i = 0; i < r->n_inputs; i++)
        json_array_append_new(data, json_pack("{s:s, s:i, s:o}", "object", "embedding", "index", i,
                                              "embedding", vector_of(facts, r, i)));
    return dump(json_pack("{s:s, s:o, s:s, s:{s:I, s:I}}", "object", r->kind->object, "data", data,
                          "model", facts->model, "usage", "prompt_tokens", n, "total_tokens", n),
                VECTOR_DIGITS);
}

/* ---- how likely ------------------------------------------------------------------------------------- */

/* log of the sum of exp(logits) */
static double log_sum(const gpt_facts_served *facts, weft_dtype dtype, const void *logits)
{
    double highest = -INFINITY, sum = 0;
    for (int64_t t = 0; t < facts->n_words; t++)
        highest = fmax(highest, weft_dtype_get(dtype, logits, t));
    for (int64_t t = 0; t < facts->n_words; t++)
        sum += exp(weft_dtype_get(dtype, logits, t) - highest);
    return highest + log(sum);
}

/* Before the first that is less likely; of equal ones the first stays the first. */
static void put_likely(gpt_told_token *told, int most, int32_t token, double log)
{
    int at = told->n_likely;
    while (at > 0 && told->logs[at - 1] < log)
        at--;
    if (at == most) return;
    if (told->n_likely < most) told->n_likely++;
    for (int i = told->n_likely - 1; i > at; i--)
        told->logs[i] = told->logs[i - 1], told->likely[i] = told->likely[i - 1];
    told->logs[at] = log, told->likely[at] = token;
}

gpt_told_token gpt_answer_token(const gpt_facts_served *facts, int n_likely, weft_dtype dtype,
                                const void *logits, int32_t token)
{
    const double sum = log_sum(facts, dtype, logits);
    gpt_told_token told = {.id = token, .log = weft_dtype_get(dtype, logits, token) - sum};
    for (int32_t t = 0; t < facts->n_words && n_likely > 0; t++)
        put_likely(&told, n_likely, t, weft_dtype_get(dtype, logits, t) - sum);
    return told;
}
