/* setup_data: what a training learns from, and what is held out: --data and the options beside it, as sets of windows. */
#include "setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../feed.h"
#include "texts.h"

/* The text that was packed when this program was built: ../share/weft/corpus.txt beside it. */
static void packed_corpus(char *path, size_t bytes)
{
    char self[2048] = "";
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;
    if (slash) *slash = '\0';
    snprintf(path, bytes, "%s/../share/weft/corpus.txt", slash ? self : ".");
    char *real = realpath(path, NULL);
    if (real) snprintf(path, bytes, "%s", real);
    free(real);
}

static weft_status check_end(const gpt_setup *setup, weft_error *error)
{
    if (!setup->words || !setup->shape.packs || gpt_encoder_end(setup->encoder) >= 0)
        return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--pack and --tokens %s: this vocabulary has no <|endoftext|>, so its tokens "
                     "do not say where documents end; leave one of the two away",
                     settings_text(setup->settings, "tokens"));
}

weft_status gpt_setup_text(const gpt_setup *setup, bool is_held, weft_dataset **data,
                           weft_error *error)
{
    const settings *s = setup->settings;
    const char *held = settings_text(s, "eval-data"), *learned = settings_text(s, "data");
    const bool is_other = is_held && *held;
    WEFT_TRY(check_end(setup, error));
    const gpt_texts_options options = {.option = is_other ? "--eval-data" : "--data",
                                       .seq = setup->shape.seq,
                                       .n_words = setup->words ? setup->shape.vocab : 0,
                                       .field = settings_text(s, "field"),
                                       .seed = is_held ? 1 : (uint64_t)settings_count(s, "seed"),
                                       .packs = setup->shape.packs,
                                       .encoder = setup->encoder,
                                       .index = settings_text(s, "index"),
                                       .share = is_other ? 0 : settings_real(s, "eval-share"),
                                       .is_held = is_held};
    const char *names = is_other ? held : *learned ? learned : setup->data_path;
    WEFT_TRY(gpt_texts_open(names, &options, data, error));
    return app_feed(s, setup->mesh, *data, error);
}

/* Into how many parts ranks cut a batch: each wants samples of its own. */
static int64_t parts_of_batch(const gpt_setup *setup)
{
    weft_box box = {{0}, {0}};
    weft_box_of(setup->program, setup->model.tokens, 0, &box);
    const int64_t own = box.end[0] - box.begin[0];
    return own > 0 ? (setup->shape.batch + own - 1) / own : 1;
}

static weft_status check_samples(const gpt_setup *setup, weft_error *error)
{
    const int64_t n = weft_dataset_samples(setup->data), parts = parts_of_batch(setup);
    if (n >= parts) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "--data %.200s has %lld windows of seq %lld, and %lld ranks share those of a "
                     "batch; take more text, a smaller --seq, or fewer ranks for batch",
                     setup->data_path, (long long)n, (long long)setup->shape.seq, (long long)parts);
}

weft_status gpt_setup_data(gpt_setup *setup, weft_error *error)
{
    const settings *s = setup->settings;
    const char *path = settings_text(s, "data");
    if (setup->words && !*path)
        return weft_fail(
            error, WEFT_USAGE,
            "--tokens %s and no --data: name a text, or what weft tokens encode made of "
            "one",
            settings_text(s, "tokens"));
    if (*path)
        snprintf(setup->data_path, sizeof setup->data_path, "%s", path);
    else
        packed_corpus(setup->data_path, sizeof setup->data_path);
    WEFT_TRY(gpt_setup_text(setup, false, &setup->data, error));
    WEFT_TRY(check_samples(setup, error));
    if (setup->words) {
        char told[BPE_TOLD];
        bpe_told(setup->words, told);
        WEFT_TRY(weft_dataset_fact(setup->data, GPT_WORDS_FACT, told, error));
    }
    return weft_dataset_start(setup->data, setup->program, error);
}
