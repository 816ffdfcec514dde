/* word2vec: words that stand in the same company get vectors that are near each other.
 *
 *     word2vec [MESH [LAYOUT]]         word2vec data:2,model:2 batch:data,word:model
 *
 * The language is made up: 600 words of 12 topics; who meets whom depends on the topic alone. For each pair that met,
 * the right partner is to be told from 7 words drawn by chance. The tables are what grows with a vocabulary, so they are
 * split: `word:model` gives each rank its share of the words, and no rank ever holds a whole table.
 * A step touches few rows. So gradients are taken with respect to the rows that were gathered, and scattered back.
 */
#include <math.h>
#include <stdio.h>
#include <weft.h>

enum { WORDS = 600, TOPICS = 12, EMBED = 16, PAIRS = 512, CANDIDATES = 8, STEPS = 120 };

typedef struct run {
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    weft_program *program;
} run;

static int32_t below(uint32_t word, int n)
{
    return (int32_t)(weft_philox_unit(word) * n);
}

/* Pairs of step `step`: a word, and candidates of which the first is one of the same topic (words of topic t are those
 * with the remainder t). */
static void draw(int step, int32_t *center, int32_t (*candidate)[CANDIDATES])
{
    const weft_philox_key key = {11, 0, (uint32_t)step};
    for (int i = 0; i < PAIRS; i++) {
        uint32_t words[12];
        for (int block = 0; block < 3; block++)
            weft_philox(key, (uint64_t)(3 * i + block), words + 4 * block);
        center[i] = below(words[0], WORDS);
        candidate[i][0] = center[i] % TOPICS + TOPICS * below(words[1], WORDS / TOPICS);
        for (int c = 1; c < CANDIDATES; c++)
            candidate[i][c] = below(words[c + 1], WORDS);
    }
}

/* How many words have one of their own topic as the word nearest to them. */
static int count_at_home(const float (*table)[EMBED])
{
    int n = 0;
    for (int a = 0; a < WORDS; a++) {
        int nearest = -1;
        double best = -2.0;
        for (int b = 0; b < WORDS; b++) {
            double product = 0.0, length = 1e-30;
            for (int e = 0; e < EMBED; e++) {
                product += (double)table[a][e] * table[b][e];
                length += (double)table[b][e] * table[b][e];
            }
            if (a == b || product / sqrt(length) < best) continue;
            best = product / sqrt(length);
            nearest = b;
        }
        n += nearest % TOPICS == a % TOPICS;
    }
    return n;
}

/* table - rate * (the rows' gradients, added where the rows came from) */
static weft_value descend(weft_value table, weft_value gradient, weft_value ids, weft_dim word)
{
    return weft_assign(table,
                       weft_sub(table, weft_scale(weft_scatter_add(gradient, ids, word), 40.0)));
}

static weft_status learn(run *r, const char *mesh, const char *layout, weft_error *error)
{
    weft_world world;
    WEFT_TRY(weft_world_open(&world, error));
    WEFT_TRY(weft_mesh_create(&world, mesh, &r->mesh, error));
    WEFT_TRY(weft_layout_create(layout, &r->layout, error));

    weft_graph *g = r->graph = weft_graph_create(1);
    weft_dim batch = {"batch", PAIRS}, candidate = {"candidate", CANDIDATES};
    weft_dim word = {"word", WORDS}, embed = {"embed", EMBED};
    weft_value center_id = weft_input(g, "center", WEFT_I32, WEFT_DIMS(batch));
    weft_value candidate_id = weft_input(g, "candidates", WEFT_I32, WEFT_DIMS(batch, candidate));
    weft_value centers =
        weft_variable(g, "centers", WEFT_F32, WEFT_DIMS(word, embed), weft_normal(0.0, 0.3));
    weft_value contexts =
        weft_variable(g, "contexts", WEFT_F32, WEFT_DIMS(word, embed), weft_normal(0.0, 0.3));
    weft_value u = weft_gather(centers, center_id, word);     /* [batch, embed]            */
    weft_value v = weft_gather(contexts, candidate_id, word); /* [batch, candidate, embed] */
    weft_value logits = weft_einsum(WEFT_DIMS(batch, candidate), u, v);
    weft_value first = weft_constant(g, WEFT_I32, WEFT_DIMS(batch), 0.0);
    weft_value loss = weft_mean(weft_cross_entropy(logits, first, candidate));
    weft_value gradient[2];
    weft_gradients(loss, WEFT_VALUES(u, v), gradient, 0);
    weft_value update_u = descend(centers, gradient[0], center_id, word);
    weft_value update_v = descend(contexts, gradient[1], candidate_id, word);
    WEFT_TRY(weft_compile(r->mesh, r->layout, WEFT_VALUES(loss, update_u, update_v), NULL,
                          &r->program, error));

    static int32_t center[PAIRS], candidates[PAIRS][CANDIDATES];
    static float table[WORDS][EMBED];
    WEFT_TRY(weft_read(r->program, centers, WEFT_F32, table, sizeof table, error));
    const int before = count_at_home((const float(*)[EMBED])table);
    for (int step = 1; step <= STEPS; step++) {
        double value;
        draw(step, center, candidates);
        WEFT_TRY(weft_write(r->program, center_id, WEFT_I32, center, sizeof center, error));
        WEFT_TRY(
            weft_write(r->program, candidate_id, WEFT_I32, candidates, sizeof candidates, error));
        WEFT_TRY(weft_run(r->program, error));
        WEFT_TRY(weft_read_scalar(r->program, loss, &value, error));
        if ((step == 1 || step % 30 == 0) && weft_mesh_is_root(r->mesh))
            printf("step %3d  loss %.4f\n", step, value);
    }
    WEFT_TRY(weft_read(r->program, centers, WEFT_F32, table, sizeof table, error));
    if (weft_mesh_is_root(r->mesh))
        printf("of %d words, those nearest to one of their own topic: %d before, %d after\n", WORDS,
               before, count_at_home((const float(*)[EMBED])table));
    return WEFT_OK;
}

int main(int n, char **arguments)
{
    run r = {NULL, NULL, NULL, NULL};
    weft_error error = WEFT_NO_ERROR;
    if (learn(&r, n > 1 ? arguments[1] : "", n > 2 ? arguments[2] : "", &error) != WEFT_OK)
        fprintf(stderr, "word2vec: %s\n", error.message);
    weft_program_destroy(&r.program);
    weft_graph_destroy(&r.graph);
    weft_layout_destroy(&r.layout);
    weft_mesh_destroy(&r.mesh);
    weft_world_close();
    return error.status == WEFT_OK ? 0 : 2;
}
