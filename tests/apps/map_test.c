/* map_test: files of other programs become ours by a map: every element lies where it belongs. */
#include "map_files.h"

/* ---- GPT-2 ----------------------------------------------------------------------------------- */

enum { LAYERS = 2, WIDTH = 24, HEADS = 3, KV = WIDTH / HEADS, SEQ = 12, VOCAB = 256 };
#define OURS "--layers 2 --width 24 --heads 3 --seq 12 "

static const char *prefix; /* of all names in the file */

static const char *named(const char *name, int layer)
{
    static char texts[4][128];
    static int next;
    char *text = texts[next++ % 4];
    if (layer < 0)
        snprintf(text, sizeof texts[0], "%s%s", prefix, name);
    else
        snprintf(text, sizeof texts[0], "%sh.%d.%s", prefix, layer, name);
    return text;
}

static void make_gpt2(const char *type, bool has_head)
{
    begin_file();
    add_tensor(named("wte.weight", -1), type, SIZES(VOCAB, WIDTH), 1);
    add_tensor(named("wpe.weight", -1), type, SIZES(SEQ, WIDTH), 1);
    for (int l = 0; l < LAYERS; l++) {
        add_tensor(named("attn.bias", l), "BOOL", SIZES(1, 1, SEQ, SEQ), 1);
        add_tensor(named("attn.masked_bias", l), type, 0, NULL, 1);
        add_tensor(named("ln_1.weight", l), type, SIZES(WIDTH), 1);
        add_tensor(named("ln_1.bias", l), type, SIZES(WIDTH), 1);
        add_tensor(named("attn.c_attn.weight", l), type, SIZES(WIDTH, 3 * WIDTH), 1);
        add_tensor(named("attn.c_attn.bias", l), type, SIZES(3 * WIDTH), 1);
        add_tensor(named("attn.c_proj.weight", l), type, SIZES(WIDTH, WIDTH), 1);
        add_tensor(named("attn.c_proj.bias", l), type, SIZES(WIDTH), 1);
        add_tensor(named("ln_2.weight", l), type, SIZES(WIDTH), 1);
        add_tensor(named("ln_2.bias", l), type, SIZES(WIDTH), 1);
        add_tensor(named("mlp.c_fc.weight", l), type, SIZES(WIDTH, 4 * WIDTH), 1);
        add_tensor(named("mlp.c_fc.bias", l), type, SIZES(4 * WIDTH), 1);
        add_tensor(named("mlp.c_proj.weight", l), type, SIZES(4 * WIDTH, WIDTH), 1);
        add_tensor(named("mlp.c_proj.bias", l), type, SIZES(WIDTH), 1);
    }
    add_tensor(named("ln_f.weight", -1), type, SIZES(WIDTH), 1);
    add_tensor(named("ln_f.bias", -1), type, SIZES(WIDTH), 1);
    if (has_head) add_tensor("lm_head.weight", type, SIZES(VOCAB, WIDTH), 1);
    end_file("gpt2.safetensors");
}

static int64_t by_width(int64_t a, int64_t b, int64_t c)
{
    return a * WIDTH + b + c;
}

static int64_t by_hidden(int64_t a, int64_t b, int64_t c)
{
    return a * 4 * WIDTH + b + c;
}

static int64_t turned(int64_t embed, int64_t vocab, int64_t c)
{
    return vocab * WIDTH + embed + c;
}

static int64_t query(int64_t embed, int64_t head, int64_t kv)
{
    return embed * 3 * WIDTH + head * KV + kv;
}

static int64_t key(int64_t embed, int64_t head, int64_t kv)
{
    return query(embed, head, kv) + WIDTH;
}

static int64_t value(int64_t embed, int64_t head, int64_t kv)
{
    return query(embed, head, kv) + 2 * WIDTH;
}

static int64_t project(int64_t head, int64_t kv, int64_t embed)
{
    return (head * KV + kv) * WIDTH + embed;
}

static const struct {
    const char *ours, *dims, *theirs;
    place where;
} of_layer[] = {
    {"norm1.gain", "embed:24", "ln_1.weight", NULL},
    {"norm1.bias", "embed:24", "ln_1.bias", NULL},
    {"query", "embed:24, heads:3, kv:8", "attn.c_attn.weight", query},
    {"key", "embed:24, heads:3, kv:8", "attn.c_attn.weight", key},
    {"value", "embed:24, heads:3, kv:8", "attn.c_attn.weight", value},
    {"project", "heads:3, kv:8, embed:24", "attn.c_proj.weight", project},
    {"project.bias", "embed:24", "attn.c_proj.bias", NULL},
    {"norm2.gain", "embed:24", "ln_2.weight", NULL},
    {"norm2.bias", "embed:24", "ln_2.bias", NULL},
    {"up", "embed:24, hidden:96", "mlp.c_fc.weight", by_hidden},
    {"up.bias", "hidden:96", "mlp.c_fc.bias", NULL},
    {"down", "hidden:96, embed:24", "mlp.c_proj.weight", by_width},
    {"down.bias", "embed:24", "mlp.c_proj.bias", NULL},
};
enum { N_OF_LAYER = sizeof of_layer / sizeof *of_layer };

static void check_gpt2(const char *run, const char *head)
{
    char name[64], slot[80];
    weft_stored *stored = open_stored(run);
    if (!stored) return;
    /* and biases of query, key and value, which are one there */
    CHECK_EQ_INT(weft_stored_n_tensors(stored),
                 3 * (4 + (head != NULL) + LAYERS * (N_OF_LAYER + 3)));
    check_tensor(stored, "bytes", "vocab:256, embed:24", named("wte.weight", -1), 1, by_width);
    if (head) check_tensor(stored, "head", "embed:24, vocab:256", head, 1, turned);
    check_tensor(stored, "places", "seq:12, embed:24", named("wpe.weight", -1), 1, by_width);
    check_tensor(stored, "norm.gain", "embed:24", named("ln_f.weight", -1), 1, NULL);
    check_tensor(stored, "norm.bias", "embed:24", named("ln_f.bias", -1), 1, NULL);
    for (int l = 0; l < LAYERS; l++) {
        for (int i = 0; i < N_OF_LAYER; i++) {
            snprintf(name, sizeof name, "block%d.%s", l, of_layer[i].ours);
            check_tensor(stored, name, of_layer[i].dims, named(of_layer[i].theirs, l), 1,
                         of_layer[i].where);
            snprintf(slot, sizeof slot, "%s/v", name);
            check_tensor(stored, slot, of_layer[i].dims, "", 0, NULL);
        }
    }
    weft_stored_close(&stored);
}

static void check_gpt(const char *run, const char *command, const char *said)
{
    char line[LINE];
    snprintf(line, sizeof line,
             "cd %s && timeout -k 1 600 " WEFT_TEST_BIN "/gpt %s --run %s " OURS "2>&1", folder,
             command, run);
    const command_result r = command_run_all(line);
    weft_test_check(r.status == 0, __FILE__, __LINE__, r.text);
    CHECK_TEXT(r.text, said);
}

/* Of every type, with and without the prefix and a head of its own. */
static void test_gpt2_becomes_our_gpt(void)
{
    static const char *const types[] = {"F32", "F16", "BF16", "F32"};
    for (int i = 0; i < 4; i++) {
        char run[16], line[LINE];
        const bool has_head = i == 2;
        prefix = i % 2 ? "transformer." : "";
        snprintf(run, sizeof run, "gpt2-%d", i);
        make_gpt2(types[i], has_head);
        snprintf(line, sizeof line, "import gpt2.safetensors %s/ckpt --map gpt2 --sizes kv=8", run);
        check_good(line);
        check_gpt2(run, has_head ? "lm_head.weight" : NULL);
        check_gpt(run, "sample --sample 20", "");
        check_gpt(run, "train --data text.txt --batch 4 --steps 3 --resume auto",
                  "continues from the checkpoint of step 1");
    }
}

/* ---- what a map can say ---------------------------------------------------------------------- */

enum { GROUPS = 2, FEW = 4 }; /* heads; of a head */

static int64_t interleaved(int64_t embed, int64_t head, int64_t kv)
{
    return embed +
           3 * ((head * 3 + 1) * FEW + kv); /* the key; the file's is [heads*part*kv, embed] */
}

static int64_t second(int64_t rows, int64_t b, int64_t c)
{
    return (rows + 2) * 3 + b + c;
}

static int64_t third(int64_t rows, int64_t groups, int64_t columns)
{
    return ((2 + 4) + rows * 1 + groups) * 3 + columns;
}

static int64_t backwards(int64_t c, int64_t b, int64_t a)
{
    return (a * 3 + b) * 4 + c;
}

static void test_splits_and_orders(void)
{
    begin_file();
    add_tensor("mixed", "F64", SIZES(GROUPS * 3 * FEW, 3), 1);
    add_tensor("uneven", "F32", SIZES(2 + 4 + 3, 3), 1);
    add_tensor("cube", "F32", SIZES(2, 3, 4), 1);
    add_tensor("numbers", "I64", SIZES(5), 16);
    add_tensor("naturals", "U64", SIZES(2), 16);
    add_tensor("one", "F32", 0, NULL, 1);
    end_file("some.safetensors");
    write_map("{\"sizes\": {\"kv\": 4, \"two\": 2, \"one\": 1}, \"rest\": \"keep\", \"tensors\": ["
              "{\"from\": \"mixed\", \"dims\": [\"heads*part*kv\", \"embed\"],"
              " \"split\": {\"part\": \"\"}, \"order\": [\"embed\", \"heads\", \"kv\"],"
              " \"to\": [\"q\", \"k\", \"v\"]},"
              "{\"from\": \"uneven\", \"dims\": [\"all\", \"columns\"],"
              " \"split\": {\"all\": [\"two\", \"rows\", \"tail*one\"]},"
              " \"to\": [\"first\", \"second\", \"third\"]},"
              "{\"from\": \"cube\", \"dims\": [\"a\", \"b\", \"c\"],"
              " \"order\": [\"c\", \"b\", \"a\"], \"to\": \"turned\"}]}");
    const command_result *r =
        run_ckpt("import some.safetensors general --map map.json --sizes part=3 rows=4");
    weft_test_check(r->status == 0, __FILE__, __LINE__, r->text);
    CHECK_TEXT(r->text, "1 of u64");
    weft_stored *stored = open_stored("general");
    if (!stored) return;
    check_tensor(stored, "k", "embed:3, heads:2, kv:4", "mixed", 1, interleaved);
    check_tensor(stored, "second", "rows:4, columns:3", "uneven", 1, second);
    check_tensor(stored, "third", "tail:3, one:1, columns:3", "uneven", 1, third);
    check_tensor(stored, "turned", "c:4, b:3, a:2", "cube", 1, backwards);
    check_tensor(stored, "numbers", "dim0:5", "numbers", 16, NULL);
    CHECK_EQ_INT(weft_stored_n_tensors(stored), 10);
    weft_stored_close(&stored);
}

/* The same of an HDF5 file, whose tensors come one after the other through a pipe. */
static void test_maps_are_for_hdf5_too(void)
{
    if (access(WEFT_TEST_BIN "/weft-read-hdf5", X_OK) != 0) {
        printf("  not tried: weft-read-hdf5 was not built\n");
        return;
    }
    write_map("{\"rest\": \"keep\", \"tensors\": ["
              "{\"from\": \"turned\", \"dims\": [\"c\", \"b\", \"a\"],"
              " \"order\": [\"a\", \"b\", \"c\"], \"to\": \"again\"},"
              "{\"from\": \"q\", \"leave\": \"to see that it can be\"}]}");
    check_good("export general general.h5");
    check_good("import general.h5 from-h5 --map map.json");
    weft_stored *stored = open_stored("from-h5");
    if (!stored) return;
    check_tensor(stored, "again", "a:2, b:3, c:4", "cube", 1, NULL);
    check_tensor(stored, "k", "embed:3, heads:2, kv:4", "mixed", 1, interleaved);
    CHECK_EQ_INT(weft_stored_n_tensors(stored), 9);
    weft_stored_close(&stored);
}

/* A tensor of a type that is none of ours, or of a shape that no tensor of ours has. */
static void add_odd(const char *name, const char *dtype, const char *shape, size_t bytes)
{
    json_object_set_new(made.header, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape",
                                  json_loads(shape, 0, NULL), "data_offsets",
                                  (json_int_t)made.bytes, (json_int_t)(made.bytes + bytes)));
    memset(made.data + made.bytes, 0, bytes);
    made.bytes += bytes;
}

static void test_what_a_map_leaves_is_never_looked_at(void)
{
    static const struct {
        const char *dtype, *shape;
        size_t bytes;
        const char *fact; /* where it is taken */
    } odd[] = {{"F8_E4M3", "[4]", 4, "of F8_E4M3, which is no number here"},
               {"F8_E5M2", "[4]", 4, "of F8_E5M2, which is no number here"},
               {"F8_E8M0", "[4]", 4, "of F8_E8M0, which is no number here"},
               {"F4", "[4]", 2, "of F4, which is no number here"},
               {"F6_E2M3", "[4]", 3, "of F6_E2M3, which is no number here"},
               {"C64", "[2]", 16, "of C64, which is no number here"},
               {"BOOL", "[2]", 2, "of BOOL, which is no number here"},
               {"F32", "[0]", 0, "a dim of size 0"},
               {"F32", "[1,1,1,1,1,1,1,1,1]", 4, "of 9 dims; the most is 8"}};
    char line[64];
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        begin_file();
        add_tensor("w", "F32", SIZES(3, 4), 1);
        add_odd("odd", odd[i].dtype, odd[i].shape, odd[i].bytes);
        end_file("odd.safetensors");
        const command_result *r = run_ckpt("import odd.safetensors never");
        CHECK_EQ_INT(r->status, 2);
        CHECK_TEXT(r->text, odd[i].fact);
        CHECK_TEXT(r->text, "odd");
        write_map("{\"tensors\": [{\"from\": \"w\", \"to\": \"w\"}, "
                  "{\"from\": \"odd\", \"zero\": \"it\"}]}");
        r = run_ckpt("import odd.safetensors never --map map.json");
        CHECK_EQ_INT(r->status, 2);
        CHECK_TEXT(r->text, odd[i].fact);
        write_map("{\"tensors\": [{\"from\": \"w\", \"to\": \"w\"}, "
                  "{\"from\": \"odd\", \"leave\": \"it\"}]}");
        snprintf(line, sizeof line, "import odd.safetensors left%zu --map map.json", i);
        check_good(line);
        snprintf(line, sizeof line, "verify left%zu", i);
        check_good(line);
    }
    CHECK_EQ_INT(run_ckpt("list never")->status, 2);
}

static void test_dims_by_name(void)
{
    begin_file();
    for (int l = 0; l < 3; l++) {
        char name[16];
        snprintf(name, sizeof name, "h.%d.w", l);
        add_tensor(name, "F32", SIZES(2, 6), 1);
    }
    add_tensor("b", "F32", SIZES(6), 1);
    end_file("named.safetensors");
    const command_result *r = run_ckpt("import named.safetensors named");
    CHECK_TEXT(r->text, "4 of them have dims that the file does not name");
    CHECK_TEXT(r->text, "--dims NAME=a,b");
    r = run_ckpt("import --dims 'h.{i}.w=in,heads*kv' b=out --sizes kv=3 named.safetensors named");
    weft_test_check(r->status == 0 && !strstr(r->text, "dim0"), __FILE__, __LINE__, r->text);
    weft_stored *stored = open_stored("named");
    if (!stored) return;
    check_tensor(stored, "h.2.w", "in:2, heads:2, kv:3", "h.2.w", 1, NULL);
    check_tensor(stored, "b", "out:6", "b", 1, NULL);
    weft_stored_close(&stored);
    CHECK_TEXT(run_ckpt("show named")->text, "[in:2, heads:2, kv:3]");
}

static void run_all(void)
{
    RUN(test_gpt2_becomes_our_gpt);
    RUN(test_splits_and_orders);
    RUN(test_maps_are_for_hdf5_too);
    RUN(test_what_a_map_leaves_is_never_looked_at);
    RUN(test_dims_by_name);
}

int main(void)
{
    return with_folder(run_all);
}
