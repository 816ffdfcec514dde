/* tokens: `weft tokens train | encode | decode`: a vocabulary learned from a text, and texts as its words. */
#include "tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../app.h"
#include "../bpe/bpe.h"
#include "../text.h"
#include "weft/io.h"

static const option options[] = {
    {"words", OPTION_COUNT, "8192", "N", "Options",
     "train: how many to learn, 257 to 65536, as a file of tokens has 16 bits for each", NULL, 257,
     BPE_MOST_WORDS},
    {"tokens", OPTION_TEXT, "", "DIR", "Options", "encode, decode: the vocabulary"},
    {"special", OPTION_FLAG, "no", "", "Options",
     "encode: a special word that stands in the text, as <|endoftext|>, is one token of its own"},
};
const option_table tokens_table = {
    .program = "weft tokens",
    .usage = "weft tokens train TEXT DIR                 a vocabulary, as GPT-2 keeps it\n"
             "weft tokens encode TEXT FILE --tokens DIR [--special]\n"
             "                                           a text as a file of tokens\n"
             "weft tokens decode FILE --tokens DIR       the text again, to stdout\n"
             "\n"
             "  weft tokens train book.txt words --words 5000\n"
             "  weft tokens encode book.txt book.tokens --tokens words\n"
             "  gpt train --tokens words --data book.tokens\n"
             "\n"
             "DIR has vocab.json and merges.txt; GPT-2's own will do. FILE is llm.c's: 256\n"
             "numbers of 32 bits, of which the third says how many tokens follow, of 16 bits\n"
             "each.\n",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .about = "a text in words: train, encode, decode",
    .commands = "train encode decode",
};

enum {
    MAX_PATH = 4096,
    AT_ONCE = 16 << 20 /* bytes of text that are encoded before they are written */
};

typedef struct tokens_call {
    const char *const *paths;
    int64_t n_words;
    const char *folder;
    bool is_special;
} tokens_call;

/* What became of a text. */
typedef struct tokens_facts {
    size_t n;         /* tokens */
    size_t n_special; /* special words in the text */
    int32_t special;  /* the first of them */
} tokens_facts;

/* A text, or a file of tokens; neither is empty. */
static weft_status read_file(const char *path, weft_file_use use, app_text *text, weft_error *error)
{
    WEFT_TRY(app_text_read(path, use == WEFT_FILE_TEXT ? "text" : "tokens", use, text, error));
    if (text->n > 0) return WEFT_OK;
    free(text->bytes);
    return weft_fail(error, WEFT_IO, "%.300s is empty; name a file with text in it", path);
}

/* ---- train ---------------------------------------------------------------------------------- */

static weft_status train(const tokens_call *c, weft_error *error)
{
    app_text text;
    bpe *b = NULL;
    WEFT_TRY(read_file(c->paths[0], WEFT_FILE_TEXT, &text, error));
    weft_status status =
        bpe_train((const unsigned char *)text.bytes, text.n, (int)c->n_words, &b, error);
    if (status == WEFT_OK) status = bpe_save(b, c->paths[1], error);
    if (status == WEFT_OK)
        printf("%s: %d words%s\n", c->paths[1], bpe_n_words(b),
               bpe_n_words(b) < c->n_words ? "; no pair is left that occurs twice" : "");
    bpe_close(&b);
    free(text.bytes);
    return status;
}

/* ---- encode --------------------------------------------------------------------------------- */

static weft_status fail_writing(const char *path, weft_error *error)
{
    return weft_fail(error, WEFT_IO, "cannot write %s: %s; name a place with room for it", path,
                     strerror(errno));
}

static bool write_head(FILE *file, size_t n)
{
    const int32_t head[WEFT_TOKENS_HEAD] = {WEFT_TOKENS_MAGIC, WEFT_TOKENS_VERSION, (int32_t)n};
    return fseek(file, 0, SEEK_SET) == 0 && fwrite(head, sizeof head, 1, file) == 1;
}

static bool write_tokens(FILE *file, const bpe_tokens *tokens)
{
    for (size_t i = 0; i < tokens->n; i++) {
        const uint16_t token = (uint16_t)tokens->ids[i];
        if (fwrite(&token, sizeof token, 1, file) != 1) return false;
    }
    return true;
}

/* How much of a text is encoded next: to where it may be cut. */
static size_t piece_of(const unsigned char *text, size_t n)
{
    for (size_t piece = AT_ONCE; piece < n; piece *= 2) {
        const size_t cut = bpe_cut(text, piece);
        if (cut > 0) return cut;
    }
    return n;
}

/* A text being encoded into a file. */
typedef struct encoding {
    bpe *b;
    const unsigned char *text; /* [n] */
    size_t n;
    bool is_special; /* special words are tokens */
    FILE *file;
    bool is_good; /* what was to be written was written */
    tokens_facts facts;
} encoding;

static weft_status write_part(encoding *e, size_t at, size_t end, weft_error *error)
{
    bpe_tokens tokens = {0};
    weft_status status = WEFT_OK;
    for (size_t n; e->is_good && status == WEFT_OK && at < end; at += n) {
        n = piece_of(e->text + at, end - at);
        tokens.n = 0;
        status = bpe_encode(e->b, e->text + at, n, &tokens, error);
        e->is_good = write_tokens(e->file, &tokens);
        e->facts.n += tokens.n;
    }
    free(tokens.ids);
    return status;
}

static void write_special(encoding *e, int32_t id)
{
    const bpe_tokens one = {.ids = &id, .n = 1};
    e->is_good = e->is_good && write_tokens(e->file, &one);
    e->facts.n++;
}

/* From one special word to the next, which are counted where they are text, too. */
static weft_status write_parts(encoding *e, weft_error *error)
{
    for (size_t at = 0; at < e->n;) {
        size_t before, n = 0;
        const int32_t id = bpe_find_special(e->b, e->text + at, e->n - at, &before);
        if (id >= 0) (void)bpe_word(e->b, id, &n);
        if (id >= 0 && e->facts.n_special++ == 0) e->facts.special = id;
        if (e->is_special) WEFT_TRY(write_part(e, at, at + before, error));
        if (e->is_special && id >= 0) write_special(e, id);
        at += before + n;
    }
    return e->is_special ? WEFT_OK : write_part(e, 0, e->n, error);
}

static weft_status write_all(encoding *e, const char *path, weft_error *error)
{
    e->is_good = write_head(e->file, 0);
    WEFT_TRY(write_parts(e, error));
    if (e->facts.n > INT32_MAX)
        return weft_fail(error, WEFT_USAGE,
                         "the text has %zu tokens; a file of them has at most 2^31 - 1: cut the "
                         "text in parts",
                         e->facts.n);
    if (e->is_good && write_head(e->file, e->facts.n)) return WEFT_OK;
    return fail_writing(path, error);
}

/* The file is there as a whole, or as it was. */
static weft_status write_file(encoding *e, const char *path, weft_error *error)
{
    char partial[MAX_PATH + sizeof ".partial"];
    if (snprintf(partial, sizeof partial, "%.*s.partial", MAX_PATH, path) >= MAX_PATH)
        return weft_fail(error, WEFT_USAGE, "FILE %.100s... has %zu letters; name a shorter one",
                         path, strlen(path));
    e->file = fopen(partial, "wb");
    if (!e->file) return fail_writing(path, error);
    weft_status status = write_all(e, path, error);
    if ((fclose(e->file) != 0 || (status == WEFT_OK && rename(partial, path) != 0)) &&
        status == WEFT_OK)
        status = fail_writing(path, error);
    if (status != WEFT_OK) remove(partial);
    return status;
}

static void say_encoded(const encoding *e, const char *text, const char *tokens)
{
    size_t n;
    const tokens_facts *f = &e->facts;
    printf("%s: %zu tokens of %d words, for %zu bytes\n", tokens, f->n, bpe_n_words(e->b), e->n);
    if (f->n_special == 0) return;
    const unsigned char *word = bpe_word(e->b, f->special, &n);
    printf("%s has %zu special word%s, the first %.*s: %s\n", text, f->n_special,
           f->n_special == 1 ? "" : "s", (int)n, (const char *)word,
           e->is_special ? "each is one token"
                         : "taken as text; --special makes one token of each");
}

/* A text is not written over by its own tokens. */
static weft_status check_other(const char *from, const char *to, weft_error *error)
{
    struct stat text, tokens;
    if (stat(from, &text) != 0 || stat(to, &tokens) != 0) return WEFT_OK;
    if (text.st_dev != tokens.st_dev || text.st_ino != tokens.st_ino) return WEFT_OK;
    return weft_fail(error, WEFT_USAGE,
                     "tokens encode: %.200s is the text itself, which its tokens would replace; "
                     "name another FILE",
                     to);
}

static weft_status encode(const tokens_call *c, weft_error *error)
{
    app_text text;
    encoding e = {.is_special = c->is_special};
    WEFT_TRY(check_other(c->paths[0], c->paths[1], error));
    WEFT_TRY(read_file(c->paths[0], WEFT_FILE_TEXT, &text, error));
    e.text = (const unsigned char *)text.bytes;
    e.n = text.n;
    weft_status status = bpe_open(c->folder, &e.b, error);
    if (status == WEFT_OK) status = write_file(&e, c->paths[1], error);
    if (status == WEFT_OK) say_encoded(&e, c->paths[0], c->paths[1]);
    bpe_close(&e.b);
    free(text.bytes);
    return status;
}

/* ---- decode --------------------------------------------------------------------------------- */

static weft_status check_head(const app_text *m, const char *path, weft_error *error)
{
    int32_t head[3] = {0};
    const size_t room = WEFT_TOKENS_HEAD * sizeof *head;
    if (m->n >= room) memcpy(head, m->bytes, sizeof head);
    if (head[0] != WEFT_TOKENS_MAGIC || head[1] != WEFT_TOKENS_VERSION || head[2] < 0)
        return weft_fail(error, WEFT_IO,
                         "%s is no file of tokens (it does not begin as one); make one of a text: "
                         "weft tokens encode",
                         path);
    if (m->n != room + (size_t)head[2] * sizeof(uint16_t))
        return weft_fail(error, WEFT_IO,
                         "%s is no file of tokens: it says that it has %d, which are %zu bytes, "
                         "and it has %zu; encode the text again, or copy the whole file",
                         path, head[2], room + (size_t)head[2] * sizeof(uint16_t), m->n);
    return WEFT_OK;
}

static weft_status print_words(const bpe *b, const app_text *m, const char *path, weft_error *error)
{
    for (size_t at = WEFT_TOKENS_HEAD * sizeof(int32_t); at < m->n; at += sizeof(uint16_t)) {
        uint16_t token;
        size_t n;
        memcpy(&token, m->bytes + at, sizeof token);
        if (token >= bpe_n_words(b))
            return weft_fail(error, WEFT_IO,
                             "%s has a token %d, and there are %d words, from 0; name the "
                             "vocabulary that it was encoded with",
                             path, token, bpe_n_words(b));
        const unsigned char *word = bpe_word(b, token, &n);
        fwrite(word, 1, n, stdout);
    }
    return WEFT_OK;
}

static weft_status decode(const tokens_call *c, weft_error *error)
{
    app_text file;
    bpe *b = NULL;
    WEFT_TRY(read_file(c->paths[0], WEFT_FILE_TOKENS, &file, error));
    weft_status status = check_head(&file, c->paths[0], error);
    if (status == WEFT_OK) status = bpe_open(c->folder, &b, error);
    if (status == WEFT_OK) status = print_words(b, &file, c->paths[0], error);
    bpe_close(&b);
    free(file.bytes);
    return status;
}

/* ---- the command line ----------------------------------------------------------------------- */

static const struct {
    const char *name, *wants;
    int n_paths;
    bool reads_words;
    weft_status (*run)(const tokens_call *, weft_error *);
} subcommands[] = {{"train", "TEXT DIR", 2, false, train},
                   {"encode", "TEXT FILE", 2, true, encode},
                   {"decode", "FILE", 1, true, decode}};
enum { N_SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static int find_subcommand(const char *name, weft_error *error)
{
    const char *names[N_SUBCOMMANDS];
    for (int i = 0; i < N_SUBCOMMANDS; i++)
        names[i] = subcommands[i].name;
    return app_find_command("tokens", name, names, N_SUBCOMMANDS, error);
}

static weft_status answer(int which, int n, char **arguments, const settings *s, weft_error *error)
{
    const char *name = subcommands[which].name, *wants = subcommands[which].wants;
    const tokens_call c = {(const char *const *)arguments, settings_count(s, "words"),
                           settings_text(s, "tokens"), settings_flag(s, "special")};
    if (n != subcommands[which].n_paths)
        return weft_fail(error, WEFT_USAGE,
                         "tokens %s wants %s, and %d %s given: weft tokens %s %s", name, wants, n,
                         n == 1 ? "name was" : "names were", name, wants);
    if (subcommands[which].reads_words && !*c.folder)
        return weft_fail(error, WEFT_USAGE,
                         "tokens %s: with which vocabulary? give --tokens DIR; weft tokens train "
                         "makes one",
                         name);
    const weft_status status = subcommands[which].run(&c, error);
    if (fflush(stdout) != 0 && status == WEFT_OK)
        return weft_fail(error, WEFT_IO, "cannot write to stdout");
    return status;
}

int tokens_main(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    const int n_operands = options_operands(&tokens_table, n, arguments, &error);
    const int which = n_operands > 0 ? find_subcommand(arguments[0], &error) : -1;
    settings *s = error.status == WEFT_OK
                      ? settings_read(&tokens_table, n - n_operands, arguments + n_operands, &error)
                      : NULL;
    if (s && which >= 0)
        (void)!answer(which, n_operands - 1, arguments + 1, s, &error);
    else if (s)
        weft_fail(&error, WEFT_USAGE, "tokens what? weft tokens --help lists what there is");
    settings_destroy(&s);
    const int code = app_leave(tokens_table.program, APP_STARTING, &error);
    weft_world_close();
    return code;
}
