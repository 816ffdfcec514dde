/* encoder: vocabularies that are free. A vocabulary remembers pieces, so each thread takes one for itself; there are as many as threads
 * ever encoded at once.
 */
#include "encoder.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4 };

typedef struct vocabulary {
    struct vocabulary *next;
    bpe *words;
} vocabulary;

struct gpt_encoder {
    char *folder;
    char name[WEFT_MAX_NAME + 1]; /* of the vocabulary, as the chain's digest has it */
    int64_t end;
    pthread_mutex_t lock;
    vocabulary *free;
};

static int64_t find_end(const bpe *words)
{
    static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"};
    int64_t end = -1;
    for (size_t i = 0, at = 0; i < sizeof ends / sizeof *ends && end < 0; i++)
        end = bpe_find_special(words, (const unsigned char *)ends[i], strlen(ends[i]), &at);
    return end;
}

/* "512 words (hash 5e1f)" is no name. */
static void name_of(const bpe *words, char name[WEFT_MAX_NAME + 1])
{
    char told[BPE_TOLD];
    unsigned long long hash = 0;
    int n = 0;
    bpe_told(words, told);
    (void)!sscanf(told, "%d words (hash %llx", &n, &hash);
    snprintf(name, WEFT_MAX_NAME + 1, "bpe_%d_%016llx", n, hash);
}

weft_status gpt_encoder_open(const char *folder, const bpe *words, gpt_encoder **encoder,
                             weft_error *error)
{
    gpt_encoder *e = *encoder = calloc(1, sizeof *e);
    if (e == NULL) return weft_fail_memory(error, sizeof *e);
    pthread_mutex_init(&e->lock, NULL);
    e->end = find_end(words);
    name_of(words, e->name);
    e->folder = strdup(folder);
    if (e->folder != NULL) return WEFT_OK;
    gpt_encoder_close(encoder);
    return weft_fail_memory(error, strlen(folder));
}

void gpt_encoder_close(gpt_encoder **encoder)
{
    gpt_encoder *e = *encoder;
    if (e == NULL) return;
    for (vocabulary *v = e->free, *next; v != NULL; v = next) {
        next = v->next;
        bpe_close(&v->words);
        free(v);
    }
    pthread_mutex_destroy(&e->lock);
    free(e->folder);
    free(e);
    *encoder = NULL;
}

int64_t gpt_encoder_end(const gpt_encoder *encoder)
{
    return encoder->end;
}

static weft_status take(gpt_encoder *e, vocabulary **taken, weft_error *error)
{
    pthread_mutex_lock(&e->lock);
    vocabulary *v = e->free;
    if (v != NULL) e->free = v->next;
    pthread_mutex_unlock(&e->lock);
    *taken = v;
    if (v != NULL) return WEFT_OK;
    v = calloc(1, sizeof *v);
    if (v == NULL) return weft_fail_memory(error, sizeof *v);
    const weft_status status = bpe_open(e->folder, &v->words, error);
    if (status != WEFT_OK)
        free(v);
    else
        *taken = v;
    return status;
}

static void give(gpt_encoder *e, vocabulary *v)
{
    pthread_mutex_lock(&e->lock);
    v->next = e->free;
    e->free = v;
    pthread_mutex_unlock(&e->lock);
}

static weft_status encode_text(const gpt_encoder *e, bpe *words, const unsigned char *text,
                               int64_t bytes, bpe_tokens *tokens, weft_error *error)
{
    WEFT_TRY(bpe_encode(words, text, (size_t)bytes, tokens, error));
    if (e->end >= 0) return bpe_append(tokens, (int32_t)e->end, error);
    return bpe_encode(words, (const unsigned char *)"\n", 1, tokens, error);
}

static weft_status encode(const void *argument, const unsigned char *text, int64_t bytes,
                          int32_t *tokens, int64_t *n, weft_error *error)
{
    gpt_encoder *e = (gpt_encoder *)(uintptr_t)argument;
    bpe_tokens made = {NULL, 0, 0};
    vocabulary *v;
    WEFT_TRY(take(e, &v, error));
    const weft_status status = encode_text(e, v->words, text, bytes, &made, error);
    give(e, v);
    *n = (int64_t)made.n;
    if (status == WEFT_OK && *n > 0 && *n <= bytes + WEFT_ENCODE_MORE)
        memcpy(tokens, made.ids, made.n * sizeof *tokens);
    free(made.ids);
    return status;
}

weft_status gpt_encoder_stage(gpt_encoder *encoder, const char *field, const char *index,
                              weft_chain **chain, weft_error *error)
{
    const weft_encode_options how = {.name = encoder->name,
                                     .field = field,
                                     .function = encode,
                                     .argument = encoder,
                                     .folder = *index ? index : NULL,
                                     .n_threads = THREADS};
    return weft_chain_encode(chain, &how, error);
}
