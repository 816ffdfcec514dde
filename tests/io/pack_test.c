/* pack_test: of packed documents each token is in one window, in order, with the document's next token as its target. No two windows of
 * rests could be one. The index is the same with any threads, is kept whole or not at all, and is found again.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain.h"
#include "faults.h"
#include "pack_fit.h"

#include "own_folder.h"
#include "test.h"

enum { DOCUMENTS = 90, LONGEST = 70, MOST_SEQ = 48, FIELDS = 4, END = 300 };

static char index_folder[64];
static char texts[DOCUMENTS][LONGEST + 1];

/* Some of them empty, some of one letter, some longer than a window. */
static int64_t length_of(int64_t document)
{
    return document % 13 == 4 ? 0 : document % 17 == 3 ? 1 : document * 7919 % LONGEST;
}

static void write_documents(const char *name, int n)
{
    FILE *file = fopen(path_of(name), "w");
    if (!CHECK(file != NULL)) return;
    for (int i = 0; i < n; i++) {
        const int length = (int)length_of(i);
        for (int k = 0; k < length; k++)
            texts[i][k] = (char)('a' + (i * 31 + k * k) % 26);
        texts[i][length] = '\0';
        fprintf(file, "{\"id\": %d, \"text\": \"%s\"}\n", i, texts[i]);
    }
    CHECK(fclose(file) == 0);
}

static weft_status open_packed(const char *name, const weft_pack_options *o, weft_chain **chain,
                               weft_error *error)
{
    WEFT_TRY(weft_chain_open(path_of(name), NULL, chain, error));
    const weft_status status = weft_chain_pack(chain, o, error);
    if (status != WEFT_OK) weft_chain_close(chain);
    return status;
}

static weft_chain *packed(const weft_pack_options *o)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    CHECK_OK(open_packed("d.jsonl", o, &chain, &error), error);
    return chain;
}

/* ---- documents whose tokens tell where they are -------------------------------------------------------- */

static int64_t failing = -1; /* a document whose length cannot be had */

static weft_status made_count(const void *self, int64_t record, int field, void *scratch,
                              int64_t *n, weft_error *error)
{
    (void)self, (void)field, (void)scratch;
    *n = length_of(record);
    if (failing < 0 || record < failing) return WEFT_OK;
    return weft_fail(error, WEFT_IO, "shelf.bin: document %lld is torn", (long long)record);
}

static weft_status made_read(const void *self, int64_t record, const weft_want *wants, int n_wants,
                             void *scratch, weft_error *error)
{
    (void)self, (void)scratch, (void)error;
    for (const weft_want *w = wants; w < wants + n_wants; w++) {
        CHECK(w->begin >= 0 && w->begin < w->end && w->end <= length_of(record));
        for (int64_t i = w->begin; i < w->end; i++)
            ((int32_t *)w->to)[i - w->begin] = (int32_t)(record * 1000 + i);
    }
    return WEFT_OK;
}

static weft_chain *made_documents(void)
{
    static const weft_chain_kind kind = {.name = "made", .read = made_read, .count = made_count};
    weft_error error = {0};
    weft_chain *chain = NULL;
    const weft_chain_found found = {.records = DOCUMENTS,
                                    .n_fields = 1,
                                    .fields = {{.name = "tokens",
                                                .dtype = WEFT_I32,
                                                .shape = {1, {{"token", LONGEST}}},
                                                .is_ragged = true}}};
    CHECK_OK(weft_chain_make(&kind, NULL, &found, &chain, &error), error);
    return chain;
}

/* ---- which piece goes where ------------------------------------------------------------------------- */

/* Places of a window that are taken; whether its pieces are in order. */
static int64_t check_window(const weft_packing *p, int64_t w, int64_t seq, int64_t *seen)
{
    int64_t used = 0;
    for (int64_t i = w > 0 ? p->ends[w - 1] : 0; i < p->ends[w]; i++) {
        const weft_pack_piece *piece = &p->pieces[i];
        used += piece->length;
        seen[piece->document] += piece->length;
        if (i > (w > 0 ? p->ends[w - 1] : 0)) CHECK(piece->document > piece[-1].document);
    }
    CHECK(used >= 1 && used <= seq);
    return used;
}

/* No two windows could be one. */
static void check_fit(const int64_t *counts, int64_t n, int64_t seq)
{
    weft_error error = {0};
    weft_packing p;
    int64_t seen[200] = {0}, total = 0, least[2] = {seq, seq};
    if (!CHECK_OK(weft_pack_fit(0, counts, n, seq, &p, &error), error)) return;
    for (int64_t w = 0; w < p.n_windows; w++) {
        const int64_t used = check_window(&p, w, seq, seen);
        if (used < least[0])
            least[1] = least[0], least[0] = used;
        else if (used < least[1])
            least[1] = used;
        total += used;
    }
    CHECK(p.n_windows < 2 || least[0] + least[1] > seq);
    for (int64_t d = 0; d < n; d++) {
        CHECK_EQ_INT(seen[d], counts[d]);
        total -= counts[d];
    }
    CHECK_EQ_INT(total, 0);
    weft_packing_free(&p);
}

static void test_documents_fit_so_that_no_two_windows_could_be_one(void)
{
    static const int64_t seqs[] = {1, 2, 7, 64, 65, 4096, 5000};
    uint64_t state = 1;
    for (size_t s = 0; s < sizeof seqs / sizeof *seqs; s++)
        for (int64_t n = 1; n < 200; n += 33) {
            int64_t counts[200];
            for (int64_t d = 0; d < n; d++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                counts[d] = (int64_t)(state >> 33) % (seqs[s] * (d % 5 == 0 ? 3 : 1) + 1);
            }
            check_fit(counts, n, seqs[s]);
        }
}

/* ---- windows ---------------------------------------------------------------------------------------- */

typedef struct row {
    int32_t fields[FIELDS][MOST_SEQ];
} row;

static void read_window(const weft_chain *chain, int64_t i, int64_t seq, row *r)
{
    weft_error error = {0};
    for (int f = 0; f < FIELDS; f++)
        CHECK_OK(weft_chain_read(chain, i, 1, f, r->fields[f], seq * 4, &error), error);
}

/* What a window says, of its own: segments 1, 2, ..., positions from 0 on, and nothing behind. */
static int segment_end(const row *r, int begin, int64_t seq, int segment)
{
    int end = begin;
    for (; end < seq && r->fields[2][end] == segment; end++)
        CHECK_EQ_INT(r->fields[3][end], end - begin);
    return end;
}

static void check_rest(const row *r, int begin, int64_t seq)
{
    for (int i = begin; i < seq; i++)
        CHECK(r->fields[0][i] == 0 && r->fields[1][i] == -1 && r->fields[2][i] == 0 &&
              r->fields[3][i] == 0);
}

/* Tokens that tell their document and their place, and targets those of the next. */
static int check_segment(const row *r, int at, int end, int32_t ending, int8_t *seen)
{
    const int document = r->fields[0][at] / 1000;
    const int64_t count = length_of(document);
    for (int i = at; i < end; i++) {
        const int place = r->fields[0][i] % 1000;
        CHECK_EQ_INT(r->fields[0][i], document * 1000 + r->fields[0][at] % 1000 + i - at);
        CHECK_EQ_INT(r->fields[1][i], place + 1 < count ? r->fields[0][i] + 1 : ending);
        seen[document * LONGEST + place]++;
    }
    return document;
}

static void check_windows(int64_t seq, int64_t end, int64_t look_ahead)
{
    static int8_t seen[DOCUMENTS * LONGEST];
    weft_error error = {0};
    const weft_pack_options o = {.seq = seq, .end = end, .look_ahead = look_ahead, .n_threads = 2};
    weft_chain *chain = made_documents();
    if (!CHECK_OK(weft_chain_pack(&chain, &o, &error), error)) return;
    memset(seen, 0, sizeof seen);
    for (int64_t i = 0; i < weft_chain_records(chain); i++) {
        row r;
        int at = 0, last = -1;
        read_window(chain, i, seq, &r);
        for (int segment = 1, next; (next = segment_end(&r, at, seq, segment)) > at; segment++) {
            const int document = check_segment(&r, at, next, end < 0 ? -1 : (int32_t)end, seen);
            CHECK(document > last);
            last = document, at = next;
        }
        check_rest(&r, at, seq);
    }
    for (int d = 0; d < DOCUMENTS; d++)
        for (int k = 0; k < LONGEST; k++)
            CHECK_EQ_INT(seen[d * LONGEST + k], k < length_of(d));
    weft_chain_close(&chain);
}

static void test_each_token_of_each_document_is_in_one_window(void)
{
    static const int64_t seqs[] = {1, 5, 16, 48};
    for (int s = 0; s < 4; s++)
        for (int64_t look = 0; look < 40; look += 19) {
            check_windows(seqs[s], -1, look);
            check_windows(seqs[s], END, look + 1);
        }
}

/* Ranks that split a window ask for parts of it. */
static void test_parts_of_a_window_are_those_of_the_whole(void)
{
    enum { SEQ = 16 };
    weft_chain *chain = packed(&(weft_pack_options){.seq = SEQ, .end = END});
    char *scratch = chain ? calloc(1, chain->found.scratch_bytes + 64) : NULL;
    weft_error error = {0};
    for (int64_t i = 0; scratch != NULL && i < weft_chain_records(chain); i++) {
        row r;
        read_window(chain, i, SEQ, &r);
        for (int begin = 0; begin < SEQ; begin++) {
            const int end = begin + 1 + (int)(i + begin) % (SEQ - begin);
            int32_t part[FIELDS][SEQ];
            int64_t wide[SEQ];
            weft_want wants[FIELDS + 1] = {{0, WEFT_I64, begin, end, wide}};
            for (int f = 0; f < FIELDS; f++)
                wants[f + 1] = (weft_want){f, WEFT_I32, begin, end, part[f]};
            CHECK_OK(weft_chain_ask(chain, i, wants, FIELDS + 1, scratch, &error), error);
            for (int f = 0; f < FIELDS; f++)
                CHECK(memcmp(part[f], r.fields[f] + begin, (size_t)(end - begin) * 4) == 0);
            CHECK_EQ_INT(wide[0], r.fields[0][begin]);
        }
    }
    free(scratch);
    weft_chain_close(&chain);
}

/* ---- the index -------------------------------------------------------------------------------------- */

static weft_hash digest_with(int n_threads, int64_t look_ahead, const char *where)
{
    weft_chain *chain = packed(&(weft_pack_options){
        .seq = 16, .look_ahead = look_ahead, .n_threads = n_threads, .folder = where});
    const weft_hash hash = chain ? weft_chain_digest(chain) : (weft_hash){{0}};
    if (chain) CHECK_TEXT(weft_chain_facts(chain), "then pack seq 16 of text, end 0, index ");
    weft_chain_close(&chain);
    return hash;
}

static void test_the_index_does_not_depend_on_threads(void)
{
    const weft_hash one = digest_with(1, 4, NULL), other = digest_with(1, 5, NULL);
    for (int n = 2; n < 8; n++) {
        const weft_hash many = digest_with(n, 4, NULL);
        CHECK(weft_hash_equal(&one, &many));
    }
    CHECK(!weft_hash_equal(&one, &other));
}

/* Files in the folder of indices: how many, and the last one's name. */
static int n_kept(char *name)
{
    int n = 0;
    DIR *listing = opendir(index_folder);
    struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL)
        if (entry->d_name[0] != '.') snprintf(name, 400, "%s/%s", index_folder, entry->d_name), n++;
    if (listing != NULL) closedir(listing);
    return n;
}

static ino_t inode_of(const char *path)
{
    struct stat facts = {0};
    CHECK_EQ_INT(stat(path, &facts), 0);
    return facts.st_ino;
}

static void test_an_index_is_kept_and_found_again(void)
{
    char name[400] = "";
    const weft_hash fresh = digest_with(2, 4, NULL), made = digest_with(2, 4, index_folder);
    CHECK_EQ_INT(n_kept(name), 1);
    const ino_t first = inode_of(name);
    const weft_hash found = digest_with(1, 4, index_folder);
    CHECK(weft_hash_equal(&fresh, &made) && weft_hash_equal(&fresh, &found));
    CHECK(n_kept(name) == 1 && inode_of(name) == first); /* read, not written again */
    (void)digest_with(1, 5, index_folder);
    CHECK_EQ_INT(n_kept(name), 2);
}

static void forget_indices(void)
{
    char line[100];
    snprintf(line, sizeof line, "rm -rf %s", index_folder);
    CHECK_EQ_INT(system(line), 0);
}

/* Cut at any byte, or with any bit turned, it is made again. */
static void test_a_damaged_index_is_made_again(void)
{
    char name[400] = "", *bytes;
    forget_indices();
    const weft_hash good = digest_with(1, 4, index_folder);
    CHECK_EQ_INT(n_kept(name), 1);
    FILE *file = fopen(name, "rb");
    struct stat facts;
    if (!CHECK(file != NULL && stat(name, &facts) == 0)) return;
    const size_t n = (size_t)facts.st_size;
    bytes = malloc(n);
    CHECK(bytes != NULL && fread(bytes, 1, n, file) == n && fclose(file) == 0);
    for (size_t at = 0; bytes != NULL && at < n; at += 1 + n / 40) {
        for (int is_cut = 0; is_cut < 2; is_cut++) {
            bytes[at] ^= 8;
            file = fopen(name, "wb");
            CHECK(file && fwrite(bytes, 1, is_cut ? at : n, file) == (is_cut ? at : n) &&
                  fclose(file) == 0);
            bytes[at] ^= 8;
            const weft_hash again = digest_with(1, 4, index_folder);
            CHECK(weft_hash_equal(&again, &good));
            CHECK(stat(name, &facts) == 0 && (size_t)facts.st_size == n);
        }
    }
    free(bytes);
}

/* Each call fails once; then there is the index, or nothing of it, and one sentence. */
static void test_a_full_disk_is_one_sentence_and_leaves_nothing(void)
{
    char name[400];
    int n_refused = 0;
    const weft_pack_options o = {.seq = 16, .folder = index_folder};
    for (int64_t at = 1; at < 40; at++) {
        weft_error error = {0};
        weft_chain *chain = NULL;
        forget_indices();
        faults_start(&(fault_plan){.folder = index_folder,
                                   .calls = FAULT_WRITES | 1 << FAULT_RENAME | 1 << FAULT_SYNC,
                                   .at = at,
                                   .action = FAULT_FAIL,
                                   .error = ENOSPC,
                                   .is_for_good = true});
        const weft_status status = open_packed("d.jsonl", &o, &chain, &error);
        const bool has_struck = faults_struck();
        faults_stop();
        weft_chain_close(&chain);
        if (!has_struck) break;
        if (status == WEFT_OK) continue;
        n_refused++;
        CHECK_EQ_INT(status, WEFT_IO);
        CHECK_TEXT(error.message, "No space left on device");
        CHECK_TEXT(error.message, index_folder);
        CHECK(strchr(error.message, '\n') == NULL);
        if (n_kept(name) > 0) CHECK(strstr(name, ".pack") != NULL); /* whole, as it has its name */
    }
    CHECK(n_refused >= 3);
}

/* ---- what cannot be --------------------------------------------------------------------------------- */

static void check_refused(const char *file, const weft_pack_options *o, const char *fact,
                          const char *other)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    CHECK_EQ_INT(open_packed(file, o, &chain, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, fact);
    CHECK_TEXT(error.message, other);
    CHECK(chain == NULL && strchr(error.message, '\n') == NULL);
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void test_what_cannot_be_packed_is_one_sentence(void)
{
    write_text("empty.jsonl", "{\"text\": \"\"}\n{\"text\": \"\"}\n");
    write_text("two.csv", "a,b,c\nx,y,1\nz,w,2\n");
    check_refused("d.jsonl", &(weft_pack_options){.seq = 0}, "seq", "0");
    check_refused("d.jsonl", &(weft_pack_options){.seq = 4, .field = "id"}, "id is i64",
                  "of one size in all records");
    check_refused("d.jsonl", &(weft_pack_options){.seq = 4, .field = "txet"}, "txet",
                  "is none of them");
    check_refused("two.csv", &(weft_pack_options){.seq = 4}, "2 fields may be documents", "text");
    check_refused("empty.jsonl", &(weft_pack_options){.seq = 4}, "2 documents have no token",
                  "in text");
    weft_error error = {0};
    weft_chain *chain = NULL;
    CHECK_OK(weft_chain_open(path_of("d.jsonl"), NULL, &chain, &error), error);
    CHECK_OK(weft_chain_shuffle(&chain, 0, 1, &error), error);
    CHECK_EQ_INT(weft_chain_pack(&chain, &(weft_pack_options){.seq = 4}, &error), WEFT_USAGE);
    CHECK_TEXT(error.message, "passes of the chain differ by its shuffle");
    CHECK_OK(weft_chain_freeze(&chain, &error), error);
    CHECK_OK(weft_chain_pack(&chain, &(weft_pack_options){.seq = 4}, &error), error);
    weft_chain_close(&chain);
}

/* Of several that cannot be counted the first is told, whichever thread meets which. */
static void test_a_document_that_cannot_be_read_is_told(void)
{
    for (int n = 1; n < 6; n++) {
        weft_error error = {0};
        weft_chain *chain = made_documents();
        const weft_pack_options o = {.seq = 8, .look_ahead = 7, .n_threads = n};
        failing = 31;
        CHECK_EQ_INT(weft_chain_pack(&chain, &o, &error), WEFT_IO);
        CHECK_TEXT(error.message, "shelf.bin: document 31 is torn");
        failing = -1;
        CHECK_OK(weft_chain_pack(&chain, &o, &error), error); /* it is as it was */
        weft_chain_close(&chain);
    }
}

static void test_a_file_that_changes_is_one_sentence(void)
{
    weft_error error = {0};
    weft_chain *chain = NULL;
    int32_t tokens[16];
    write_text("changed.jsonl", "{\"text\": \"some letters\"}\n{\"text\": \"and others\"}\n");
    if (!CHECK_OK(open_packed("changed.jsonl", &(weft_pack_options){.seq = 16}, &chain, &error),
                  error))
        return;
    write_text("changed.jsonl", "{\"text\": \"less\"}\n");
    CHECK_EQ_INT(weft_chain_read(chain, 0, 1, 0, tokens, sizeof tokens, &error), WEFT_IO);
    CHECK_TEXT(error.message, "changed.jsonl");
    CHECK_TEXT(error.message, "do not change data while it is read");
    weft_chain_close(&chain);
}

int main(void)
{
    if (!own_folder_open("pack")) return weft_test_report();
    snprintf(index_folder, sizeof index_folder, "%s/index", folder);
    write_documents("d.jsonl", DOCUMENTS);
    RUN(test_documents_fit_so_that_no_two_windows_could_be_one);
    RUN(test_each_token_of_each_document_is_in_one_window);
    RUN(test_parts_of_a_window_are_those_of_the_whole);
    RUN(test_the_index_does_not_depend_on_threads);
    RUN(test_an_index_is_kept_and_found_again);
    RUN(test_a_damaged_index_is_made_again);
    RUN(test_a_full_disk_is_one_sentence_and_leaves_nothing);
    RUN(test_what_cannot_be_packed_is_one_sentence);
    RUN(test_a_document_that_cannot_be_read_is_told);
    RUN(test_a_file_that_changes_is_one_sentence);
    own_folder_close();
    return weft_test_report();
}
