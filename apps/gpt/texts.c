/* texts: what --data names, as a set of windows. A single file is read as it always was; others are chains. */
#include "texts.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../options_check.h"
#include "weft/number.h"

enum { MOST = 256 };

typedef struct text {
    char *path;
    double weight;
    bool has_weight;
} text;

typedef struct texts {
    const gpt_texts_options *options;
    text list[MOST];
    weft_chain *chains[MOST];
    int n;
} texts;

static bool is_there(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0;
}

/* ---- names and weights ---------------------------------------------------------------------------- */

/* Behind the last colon, unless a file is called so with it. */
static weft_status take_weight(const texts *all, text *t, weft_error *error)
{
    char *colon = strrchr(t->path, ':');
    if (colon == NULL || is_there(t->path)) return WEFT_OK;
    const char *said = colon + 1;
    const int n = weft_number_read(said, &t->weight);
    t->has_weight = n > 0 && said[n] == '\0';
    if (t->has_weight) *colon = '\0';
    if (t->has_weight && t->weight > 0 && t->weight < 1e15) return WEFT_OK;
    if (t->has_weight)
        return weft_fail(error, WEFT_USAGE,
                         "%s: the weight of %.200s is %s, and each is above 0; leave out a text of "
                         "which nothing is wanted",
                         all->options->option, t->path, said);
    *colon = '\0';
    const bool is_weight = is_there(t->path);
    *colon = ':';
    if (!is_weight) return WEFT_OK; /* a name with a colon, which opening speaks of */
    return weft_fail(error, WEFT_USAGE,
                     "%s: behind %.*s stands \":%.60s\", which is no weight; write a number above "
                     "0, as :0.7",
                     all->options->option, (int)(colon - t->path), t->path, said);
}

static weft_status add(texts *all, const char *name, size_t n, weft_error *error)
{
    if (n == 0)
        return weft_fail(error, WEFT_USAGE,
                         "%s: between two commas, or before the first or behind the last, there is "
                         "no name; write as a.txt,b.txt",
                         all->options->option);
    if (all->n == MOST)
        return weft_fail(error, WEFT_USAGE,
                         "%s names more than %d texts; name many by a pattern, as 'books/*.txt'",
                         all->options->option, MOST);
    text *t = &all->list[all->n++];
    t->path = strndup(name, n);
    if (t->path == NULL) return weft_fail_memory(error, n);
    WEFT_TRY(option_check_path("FILE", t->path, error));
    return take_weight(all, t, error);
}

/* A file whose name has commas or colons is meant itself. */
static weft_status read_names(texts *all, const char *names, weft_error *error)
{
    if (is_there(names)) {
        text *t = &all->list[all->n++];
        t->path = strdup(names);
        return t->path ? WEFT_OK : weft_fail_memory(error, strlen(names));
    }
    for (const char *at = names;; at++) {
        const size_t n = strcspn(at, ",");
        WEFT_TRY(add(all, at, n, error));
        at += n;
        if (*at == '\0') break;
    }
    for (int i = 1; i < all->n; i++) {
        const int with = all->list[i].has_weight ? i : 0, without = with == i ? 0 : i;
        if (all->list[i].has_weight != all->list[0].has_weight)
            return weft_fail(error, WEFT_USAGE,
                             "%s: %.120s has the weight %g and %.120s has none; give all of them "
                             "weights, or none",
                             all->options->option, all->list[with].path, all->list[with].weight,
                             all->list[without].path);
    }
    return WEFT_OK;
}

/* ---- chains ---------------------------------------------------------------------------------------- */

/* What is held out of each, or all but that: so that a mixture has its shares in both. */
static weft_status split(const gpt_texts_options *o, const char *path, weft_chain **chain,
                         weft_error *error)
{
    const int64_t n = weft_chain_records(*chain), held = (int64_t)(o->share * (double)n);
    if (o->share <= 0) return WEFT_OK;
    if (held < 1)
        return weft_fail(error, WEFT_USAGE,
                         "--eval-share %g of the %lld samples of %.200s is less than one; give a "
                         "larger share, or name data with --eval-data",
                         o->share, (long long)n, path);
    return o->is_held ? weft_chain_take(chain, n - held, held, error)
                      : weft_chain_take(chain, 0, n - held, error);
}

/* Of a pattern the first file says it. What is not there is told by who opens it as tokens. */
static bool is_of_tokens(const char *path)
{
    int32_t magic = 0;
    glob_t found;
    const bool is_pattern = !is_there(path) && glob(path, 0, NULL, &found) == 0;
    FILE *file = fopen(is_pattern ? found.gl_pathv[0] : path, "rb");
    const bool is_read = file != NULL && fread(&magic, sizeof magic, 1, file) == 1;
    if (file != NULL) fclose(file);
    if (is_pattern) globfree(&found);
    return file == NULL || (is_read && magic == WEFT_TOKENS_MAGIC);
}

static weft_status split_documents(const gpt_texts_options *o, weft_chain **chain,
                                   weft_error *error)
{
    const weft_split_options how = {.token = gpt_encoder_end(o->encoder),
                                    .folder = *o->index ? o->index : NULL,
                                    .n_threads = 4};
    return weft_chain_split(chain, &how, error);
}

/* A file of tokens, or texts that become tokens as they are read: documents either way. */
static weft_status open_words(const gpt_texts_options *o, const char *path, weft_chain **chain,
                              weft_error *error)
{
    const char *field = *o->field ? o->field : NULL;
    const bool has_tokens = is_of_tokens(path);
    const weft_open_options words = {.format = "tokens"}, letters = {.fields = field};
    WEFT_TRY(weft_chain_open(path, has_tokens ? &words : &letters, chain, error));
    return has_tokens ? split_documents(o, chain, error)
                      : gpt_encoder_stage(o->encoder, field, o->index, chain, error);
}

/* Documents are held out before they are packed: none is in both. */
static weft_status open_packed(const gpt_texts_options *o, const char *path, weft_chain **chain,
                               weft_error *error)
{
    const char *field = *o->field ? o->field : NULL;
    const bool has_words = o->n_words > 0;
    const weft_pack_options how = {.seq = o->seq,
                                   .field = has_words ? "tokens" : field,
                                   .end = -1,
                                   .folder = *o->index ? o->index : NULL,
                                   .n_threads = 4};
    const weft_open_options letters = {.fields = field};
    if (has_words) WEFT_TRY(open_words(o, path, chain, error));
    if (!has_words) WEFT_TRY(weft_chain_open(path, &letters, chain, error));
    WEFT_TRY(split(o, path, chain, error));
    return weft_chain_pack(chain, &how, error);
}

static weft_status open_windows(const gpt_texts_options *o, const char *path, weft_chain **chain,
                                weft_error *error)
{
    const weft_text_options how = {
        .seq = o->seq, .n_words = o->n_words, .field = *o->field ? o->field : NULL};
    if (o->n_words == 0 || is_of_tokens(path)) return weft_chain_text(path, &how, chain, error);
    WEFT_TRY(open_words(o, path, chain, error));
    return weft_chain_windows(chain, &(weft_windows_options){.seq = o->seq, .between = -1}, error);
}

static weft_status open_one(texts *all, int i, bool is_shuffled, weft_error *error)
{
    const gpt_texts_options *o = all->options;
    weft_chain **chain = &all->chains[i];
    const char *path = all->list[i].path;
    if (o->packs) WEFT_TRY(open_packed(o, path, chain, error));
    if (!o->packs) WEFT_TRY(open_windows(o, path, chain, error));
    if (!o->packs) WEFT_TRY(split(o, path, chain, error));
    return is_shuffled ? weft_chain_shuffle(chain, 0, o->seed + (uint64_t)i, error) : WEFT_OK;
}

static weft_status join(texts *all, weft_chain **chain, weft_error *error)
{
    double weights[MOST];
    const bool is_mixed = all->list[0].has_weight && all->n > 1;
    const bool is_shuffled = !all->options->is_held;
    for (int i = 0; i < all->n; i++) {
        WEFT_TRY(open_one(all, i, is_shuffled && is_mixed, error));
        weights[i] = all->list[i].weight;
    }
    if (is_mixed) return weft_chain_mix(all->chains, weights, all->n, chain, error);
    WEFT_TRY(weft_chain_concat(all->chains, all->n, chain, error));
    return is_shuffled ? weft_chain_shuffle(chain, 0, all->options->seed, error) : WEFT_OK;
}

/* Words are a vocabulary's; the library tells of a token that is none when it is read. */
static weft_status bound(weft_dataset *data, const gpt_texts_options *o, weft_error *error)
{
    if (o->n_words == 0) return WEFT_OK;
    WEFT_TRY(weft_dataset_bound(data, "tokens", o->n_words, 0, error));
    return weft_dataset_bound(data, "targets", o->n_words, o->packs ? -1 : 0, error);
}

static weft_status open_chain(texts *all, weft_dataset **data, weft_error *error)
{
    weft_chain *chain = NULL;
    weft_status status = join(all, &chain, error);
    if (status == WEFT_OK) status = weft_chain_dataset(&chain, NULL, data, error);
    if (status == WEFT_OK) status = bound(*data, all->options, error);
    weft_chain_close(&chain);
    return status;
}

/* ---- a single file ---------------------------------------------------------------------------------- */

/* Text or tokens, and not records that have a text among their fields. */
static bool is_plain(const texts *all)
{
    weft_chain *chain = NULL;
    weft_error ignored = {.rank = -1};
    struct stat facts;
    const char *path = all->list[0].path;
    if (all->options->packs || all->n > 1 || stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        return false;
    if (all->options->n_words > 0) return is_of_tokens(path);
    if (weft_chain_open(path, NULL, &chain, &ignored) != WEFT_OK) return false;
    const bool is_text = strcmp(weft_chain_format(chain), "text") == 0;
    weft_chain_close(&chain);
    return is_text;
}

static weft_status open_plain(const texts *all, weft_dataset **data, weft_error *error)
{
    const gpt_texts_options *o = all->options;
    const char *path = all->list[0].path;
    WEFT_TRY(o->n_words > 0 ? weft_tokens_open(path, o->n_words, o->seq, o->seed, data, error)
                            : weft_text_open(path, o->seq, o->seed, data, error));
    const int64_t n = weft_dataset_samples(*data), held = (int64_t)(o->share * (double)n);
    if (o->share <= 0) return WEFT_OK;
    if (held < 1)
        return weft_fail(
            error, WEFT_USAGE,
            "--eval-share %g of %lld samples is less than one; give a larger share, or "
            "name data with --eval-data",
            o->share, (long long)n);
    return o->is_held ? weft_dataset_take(*data, n - held, held, error)
                      : weft_dataset_take(*data, 0, n - held, error);
}

weft_status gpt_texts_open(const char *names, const gpt_texts_options *options, weft_dataset **data,
                           weft_error *error)
{
    texts *all = calloc(1, sizeof *all);
    *data = NULL;
    if (all == NULL) return weft_fail_memory(error, sizeof *all);
    all->options = options;
    weft_status status = read_names(all, names, error);
    if (status == WEFT_OK)
        status = is_plain(all) ? open_plain(all, data, error) : open_chain(all, data, error);
    if (status != WEFT_OK) weft_dataset_close(data);
    for (int i = 0; i < all->n; i++) {
        weft_chain_close(&all->chains[i]);
        free(all->list[i].path);
    }
    free(all);
    return status;
}
