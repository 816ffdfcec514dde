/* encoder_decoder: a transformer that reads a word and writes it backwards.
 *
 *     encoder_decoder [MESH [LAYOUT]]      encoder_decoder data:2,model:2 batch:data,heads:model,hidden:model
 *
 * The encoder's rows are the dim "source", the decoder's are "target". Attention is one op; which rows ask and which are
 * asked is said by names: encoder source to source, decoder target to target, causal, and target to source.
 */
#include <stdio.h>
#include <weft.h>

enum {
    BATCH = 64,
    LETTERS = 12,
    ROWS = 6,
    EMBED = 32,
    HEADS = 4,
    KEY = 8,
    HIDDEN = 64,
    STEPS = 60
};

typedef struct run {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
} run;

static const weft_dim batch = {"batch", BATCH}, letter = {"letter", LETTERS + 1},
                      embed = {"embed", EMBED}, heads = {"heads", HEADS}, key = {"key", KEY},
                      hidden = {"hidden", HIDDEN};

/* Words of step `step`; letter number LETTERS begins what is written. */
static void draw(int step, int32_t (*word)[ROWS], int32_t (*begun)[ROWS],
                 int32_t (*backwards)[ROWS])
{
    const weft_philox_key k = {5, 0, (uint32_t)step};
    for (int i = 0; i < BATCH * ROWS; i++) {
        uint32_t words[4];
        weft_philox(k, (uint64_t)i, words);
        word[i / ROWS][i % ROWS] = (int32_t)(weft_philox_unit(words[0]) * LETTERS);
    }
    for (int b = 0; b < BATCH; b++) {
        for (int i = 0; i < ROWS; i++) {
            backwards[b][i] = word[b][ROWS - 1 - i];
            begun[b][i] = i == 0 ? LETTERS : backwards[b][i - 1];
        }
    }
}

/* letters at their places: ids [batch, rows] to [batch, rows, embed] */
static weft_value embedded(weft_value ids, weft_dim rows, const char *name)
{
    weft_embedding_options options = {0};
    options.name = name;
    options.entry = letter;
    options.embed = embed;
    options.over = rows;
    options.initializer = "lecun_normal";
    return weft_embedding(ids, &options);
}

/* A block over rows, which attend to each other, and, where there is one, to a memory. */
static weft_value block(weft_value x, weft_dim rows, const char *name, bool causal,
                        weft_value memory, weft_dim memory_rows)
{
    weft_transformer_options options = {0};
    options.name = name;
    options.embed = embed;
    options.heads = heads;
    options.hidden = hidden;
    options.self.query = options.self.memory = options.across.query = rows;
    options.self.feature = options.across.feature = key;
    options.self.causal = causal;
    options.memory = memory;
    options.across.memory = memory_rows;
    return weft_transformer(x, &options);
}

/* the scores of all letters */
static weft_value spelled(weft_value x)
{
    weft_dense_options options = {0};
    options.name = "spell";
    options.in = WEFT_DIMS(embed);
    options.out = WEFT_DIMS(letter);
    return weft_dense(x, &options);
}

static void say(const char *what, const int32_t *letters)
{
    printf("  %s ", what);
    for (int i = 0; i < ROWS; i++)
        putchar(letters[i] < LETTERS ? 'a' + letters[i] : '?');
}

static weft_status learn(run *r, const char *mesh, const char *layout, weft_error *error)
{
    weft_world world;
    WEFT_TRY(weft_world_open(&world, error));
    WEFT_TRY(weft_mesh_create(&world, mesh, &r->mesh, error));
    WEFT_TRY(weft_layout_create(layout, &r->layout, error));

    weft_graph *g = r->graph = weft_graph_create(1);
    weft_dim source = {"source", ROWS}, target = {"target", ROWS};
    weft_value word = weft_input(g, "word", WEFT_I32, WEFT_DIMS(batch, source));
    weft_value begun = weft_input(g, "begun", WEFT_I32, WEFT_DIMS(batch, target));
    weft_value wanted = weft_input(g, "wanted", WEFT_I32, WEFT_DIMS(batch, target));
    weft_value none = {NULL, 0};
    weft_value read = block(embedded(word, source, "read"), source, "encoder", false, none, source);
    weft_value write =
        block(embedded(begun, target, "write"), target, "decoder", true, read, source);
    weft_value logits = spelled(write);
    weft_value loss = weft_mean(weft_cross_entropy(logits, wanted, letter));
    weft_value written = weft_argmax(logits, letter);
    weft_optimizer_options options = {0};
    options.rate = 0.004;
    weft_value update = weft_adam(loss, &options);
    WEFT_TRY(weft_compile(r->mesh, r->layout, WEFT_VALUES(loss, written, update), NULL, &r->program,
                          error));

    int32_t words[BATCH][ROWS], starts[BATCH][ROWS], backwards[BATCH][ROWS], said[BATCH][ROWS];
    for (int step = 1; step <= STEPS; step++) {
        double value;
        draw(step, words, starts, backwards);
        WEFT_TRY(weft_write(r->program, word, WEFT_I32, words, sizeof words, error));
        WEFT_TRY(weft_write(r->program, begun, WEFT_I32, starts, sizeof starts, error));
        WEFT_TRY(weft_write(r->program, wanted, WEFT_I32, backwards, sizeof backwards, error));
        WEFT_TRY(weft_run(r->program, error));
        if (step != 1 && step % 10 != 0) continue;
        WEFT_TRY(weft_read_scalar(r->program, loss, &value, error));
        WEFT_TRY(weft_read(r->program, written, WEFT_I32, said, sizeof said, error));
        if (!weft_mesh_is_root(r->mesh)) continue;
        printf("step %3d  loss %.4f", step, value);
        say("read", words[0]);
        say("wrote", said[0]);
        printf("\n");
    }
    return WEFT_OK;
}

int main(int n, char **arguments)
{
    run r = {NULL, NULL, NULL, NULL};
    weft_error error = WEFT_NO_ERROR;
    if (learn(&r, n > 1 ? arguments[1] : "", n > 2 ? arguments[2] : "", &error) != WEFT_OK)
        fprintf(stderr, "encoder_decoder: %s\n", error.message);
    weft_program_destroy(&r.program);
    weft_graph_destroy(&r.graph);
    weft_layout_destroy(&r.layout);
    weft_mesh_destroy(&r.mesh);
    weft_world_close();
    return error.status == WEFT_OK ? 0 : 2;
}
