/* kinds_test: what a file is by its first bytes: each kind passes where it is what is wanted, and else is named, with a way out. */
#include "dataset.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#define BIT(name)  (1u << WEFT_FILE_##name)
#define BYTES(...) __VA_ARGS__, sizeof(__VA_ARGS__) - 1
enum { TEXTS = BIT(TEXT) | BIT(LINES) | BIT(JSON), ALL = (1u << WEFT_FILE_USES) - 1 };

static const struct sample {
    const char *bytes;
    size_t n;
    unsigned passes;
    const char *name; /* NULL: of no kind that is known */
    const char *way;  /* for a use that it leads to; NULL: not looked at */
    weft_file_use use;
} samples[] = {
    {BYTES("\x10\0\0\0\0\0\0\0{\"w\":{\"dtype\":1}"), BIT(SAFETENSORS), "a safetensors file",
     "--format safetensors", WEFT_FILE_HDF5},
    {BYTES("\211HDF\r\n\032\n\0\0\0\0"), BIT(HDF5), "an HDF5 file", "weft ckpt import",
     WEFT_FILE_CHECKPOINT},
    {BYTES("\xe8\xf3\x34\x01\1\0\0\0"), BIT(TOKENS), "a file of tokens", "weft tokens decode",
     WEFT_FILE_TEXT},
    {BYTES("\0\0\x08\x01\0\0\0\1\7"), BIT(IDX), "an IDX file", NULL, 0},
    {BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12345\n"), 0,
     "a pointer of Git LFS", "git lfs pull", WEFT_FILE_SAFETENSORS},
    {BYTES("<!DOCTYPE html>\n<html><head><title>404 Not Found</title>"), 0, "a server's answer",
     "get the file again", WEFT_FILE_TEXT},
    {BYTES("\n<HTML><TITLE>Sign in to GitHub</TITLE>"), 0, "a server's answer", NULL, 0},
    {BYTES("Entry not found"), 0, "a server's answer", NULL, 0},
    {BYTES("{\"error\":\"Repository not found\"}"), 0, "a server's answer", NULL, 0},
    {BYTES("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>"), 0, "a server's answer", NULL,
     0},
    {BYTES("<!doctype html><title>A tale of 1404 nights</title>"), BIT(TEXT), "an HTML page",
     "get the file itself", WEFT_FILE_JSON},
    {BYTES("<?xml version=\"1.0\"?><mediawiki>"), BIT(TEXT), "XML", NULL, 0},
    {BYTES("{\"metadata\": {}, \"weight_map\": {\"w\": \"model-1.safetensors\"}}"),
     BIT(TEXT) | BIT(JSON), "the index of a model in several files", "join these",
     WEFT_FILE_SAFETENSORS},
    {BYTES("\xff\xfet\0e\0x\0t\0"), 0, "text in UTF-16", "iconv -f UTF-16", WEFT_FILE_TEXT},
    {BYTES("\xfe\xff\0t\0e\0x\0t"), 0, "text in UTF-16", NULL, 0},
    {BYTES("l\0r\0 \0=\0 \0001\0"), 0, "text in UTF-16", "iconv -f UTF-16", WEFT_FILE_LINES},
    {BYTES("\0l\0r\0 \0=\0 \0001"), 0, "text in UTF-16", NULL, 0},
    {BYTES("\xff\xfe\0\0t\0\0\0"), 0, "text in UTF-32", "iconv -f UTF-32", WEFT_FILE_JSON},
    {BYTES("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl"), 0,
     "a file of PyTorch's", "torch.load", WEFT_FILE_SAFETENSORS},
    {BYTES("\x80\x02\x8a\nl\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M"), 0,
     "a file of PyTorch's", NULL, 0},
    {BYTES("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0w.npy"), 0, "NumPy arrays",
     "safetensors.numpy", WEFT_FILE_HDF5},
    {BYTES("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0a.txt"), 0, "a zip archive",
     "unzip", WEFT_FILE_IDX},
    {BYTES("\x93NUMPY\1\0v\0{'descr'"), 0, "a NumPy array", "safetensors.numpy",
     WEFT_FILE_SAFETENSORS},
    {BYTES("\x80\x04K\1."), 0, "a Python pickle", "save its arrays", WEFT_FILE_HDF5},
    {BYTES("GGUF\3\0\0\0"), 0, "a GGUF file", "that it was made of", WEFT_FILE_SAFETENSORS},
    {BYTES("\x1f\x8b\x08\0"), BIT(IDX), "a gzip archive", "gunzip", WEFT_FILE_TEXT},
    {BYTES("BZh91AY"), 0, "a bzip2 archive", "bunzip2", WEFT_FILE_TEXT},
    {BYTES("%PDF-1.7\n\xe2"), 0, "a PDF document", "pdftotext", WEFT_FILE_TEXT},
    {BYTES("\x89PNG\r\n\032\n"), 0, "a PNG image", NULL, 0},
    {BYTES("{\"w\": 1}"), BIT(TEXT) | BIT(JSON), "JSON", NULL, 0},
    {BYTES("\xef\xbb\xbf [1, 2]"), BIT(TEXT) | BIT(JSON), "JSON", NULL, 0},
    {BYTES("label,1x1,1x2\n5,0,0\n"), TEXTS, "a table of text (CSV)", NULL, 0},
    {BYTES("To be, or not to be"), TEXTS, "text", NULL, 0},
    {BYTES("\xef\xbb\xbfna\xc3\xafve"), TEXTS, "text", NULL, 0},
    {BYTES(" \n\n"), TEXTS, "nothing but white space", NULL, 0},
    {BYTES(""), BIT(TEXT) | BIT(LINES) | BIT(IDX), "empty", NULL, 0},
    {BYTES("\1\2\3\4 anything else"), ALL, NULL, NULL, 0},
    {BYTES("\0\0\0\0\0\0\0\0\0\0\0\0"), ALL, NULL, NULL, 0},
};

static char path[] = "/tmp/weft-kinds-XXXXXX";

static void write_sample(const struct sample *s)
{
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(s->bytes, 1, s->n, file) == s->n && fclose(file) == 0);
}

/* By its path, and by its bytes. */
static void check_use(const struct sample *s, weft_file_use use)
{
    weft_error by_path = WEFT_NO_ERROR, by_bytes = WEFT_NO_ERROR;
    const bool passes = s->passes >> use & 1;
    const weft_status status = weft_file_check(path, use, &by_path);
    CHECK_EQ_INT(status, passes ? WEFT_OK : WEFT_USAGE);
    CHECK_EQ_INT(weft_bytes_check(s->bytes, s->n, path, use, &by_bytes), status);
    CHECK_TEXT(by_bytes.message, by_path.message);
    if (status == WEFT_OK) return;
    CHECK_TEXT(by_path.message, path);
    CHECK_TEXT(by_path.message, s->name ? s->name : "?");
    CHECK(strlen(by_path.message) < 400 && strchr(by_path.message, '\n') == NULL);
    if (s->way && use == s->use) CHECK_TEXT(by_path.message, s->way);
}

static void test_each_kind_is_named_where_another_is_wanted(void)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        write_sample(&samples[i]);
        for (int use = 0; use < WEFT_FILE_USES; use++)
            check_use(&samples[i], (weft_file_use)use);
    }
}

/* However little of it is there, looking at it is no harm. */
static void test_any_begin_of_a_file_can_be_looked_at(void)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        for (size_t n = 0; n <= samples[i].n; n++) {
            unsigned char *exact = malloc(n); /* a sanitizer sees a byte behind it */
            memcpy(exact, samples[i].bytes, n);
            for (int use = 0; use < WEFT_FILE_USES; use++) {
                const weft_status status =
                    weft_bytes_check(exact, n, "x", (weft_file_use)use, NULL);
                CHECK(status == WEFT_OK || status == WEFT_USAGE);
            }
            free(exact);
        }
}

static void test_hdf5_may_begin_behind_a_block_of_text(void)
{
    char block[8192 + 8];
    memset(block, 'x', sizeof block);
    memcpy(block + 8192, "\211HDF\r\n\032\n", 8);
    const struct sample s = {block, sizeof block, 0, NULL, NULL, 0};
    write_sample(&s);
    CHECK_EQ_INT(weft_file_check(path, WEFT_FILE_HDF5, NULL), WEFT_OK);
    CHECK_EQ_INT(weft_file_check(path, WEFT_FILE_TEXT, NULL), WEFT_USAGE);
}

static void test_what_is_no_file_is_said(void)
{
    weft_error error = WEFT_NO_ERROR;
    CHECK_EQ_INT(weft_file_check("/tmp", WEFT_FILE_TEXT, &error), WEFT_IO);
    CHECK_TEXT(error.message, "name a file, not a directory");
    weft_error_clear(&error);
    CHECK_EQ_INT(weft_file_check("/no/where", WEFT_FILE_TEXT, &error), WEFT_IO);
    CHECK_TEXT(error.message, "No such file");
}

static void test_a_byte_order_mark_is_three_bytes(void)
{
    CHECK_EQ_INT(weft_text_mark("\xef\xbb\xbfx", 4), 3);
    CHECK_EQ_INT(weft_text_mark("\xef\xbb", 2), 0);
    CHECK_EQ_INT(weft_text_mark("text", 4), 0);
    CHECK_EQ_INT(weft_text_mark(NULL, 0), 0);
}

/* The readers of datasets ask. */
static void test_datasets_are_of_their_kind(void)
{
    weft_dataset *data;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = &samples[i];
        weft_error error = WEFT_NO_ERROR;
        write_sample(s);
        (void)!weft_text_open(path, 1, 1, &data, &error);
        if (!(s->passes & BIT(TEXT))) CHECK_TEXT(error.message, s->name);
        weft_dataset_close(&data);
        weft_error_clear(&error);
        CHECK(weft_tokens_open(path, 300, 1, 1, &data, &error) != WEFT_OK);
        if (!(s->passes & BIT(TOKENS))) CHECK_TEXT(error.message, s->name);
        weft_error_clear(&error);
        CHECK(weft_idx_open(path, path, 0, 0, false, 1, &data, &error) != WEFT_OK);
        if (!(s->passes & BIT(IDX))) CHECK_TEXT(error.message, s->name);
    }
}

int main(void)
{
    const int file = mkstemp(path);
    if (file < 0) return 1;
    close(file);
    RUN(test_each_kind_is_named_where_another_is_wanted);
    RUN(test_any_begin_of_a_file_can_be_looked_at);
    RUN(test_hdf5_may_begin_behind_a_block_of_text);
    RUN(test_what_is_no_file_is_said);
    RUN(test_a_byte_order_mark_is_three_bytes);
    RUN(test_datasets_are_of_their_kind);
    remove(path);
    return weft_test_report();
}
