/* checkpoint_pairs_test: what is saved on one mesh and layout is restored on another to the bit;
 * thirty of them on one to eight ranks, with sizes that no mesh divides and boxes that are empty.
 *
 * --all: all 900 pairs.
 */
#include "crash_net.h"

static const place places[] = {
    {"data:1", "", 0, 1},
    {"data:2", "batch:data", 0, 2},
    {"data:2", "batch:data", 1, 2},
    {"data:2", "batch:data", 3, 2},
    {"model:2", "hidden:model", 0, 2},
    {"model:2", "digit:model,pixel:model", 0, 2},
    {"model:2", "pixel:model", 0, 2},
    {"data:3", "batch:data", 0, 3},
    {"data:3", "batch:data", 1, 3},
    {"data:3", "batch:data", 2, 3},
    {"data:3", "batch:data", 3, 3},
    {"model:3", "hidden:model", 0, 3},
    {"model:3", "digit:model", 0, 3},
    {"data:2,model:2", "batch:data,hidden:model", 0, 4},
    {"data:2,model:2", "batch:data,hidden:model", 1, 4},
    {"data:2,model:2", "batch:data,hidden:model", 3, 4},
    {"data:2,model:2", "hidden:data,digit:model", 0, 4},
    {"model:2,data:2", "batch:data,pixel:model", 3, 4},
    {"data:4", "batch:data", 2, 4},
    {"data:4", "batch:data", 3, 4},
    {"model:4", "hidden:model", 0, 4}, /* 5 over 4: two each, the last has none */
    {"data:5", "batch:data", 3, 5},
    {"model:5", "hidden:model,digit:model", 0, 5},
    {"data:3,model:2", "batch:data,hidden:model", 3, 6},
    {"data:2,model:3", "batch:data,pixel:model", 2, 6},
    {"model:7", "pixel:model", 0, 7},
    {"data:8", "batch:data", 3, 8},
    {"model:8", "digit:model,hidden:model", 0, 8}, /* more ranks than elements */
    {"data:2,model:4", "batch:data,hidden:model+data", 3, 8},
    {"a:2,b:2,c:2", "batch:a,hidden:b+c", 1, 8},
};
enum { N_PLACES = sizeof places / sizeof *places, QUICK = 2 };

typedef struct saved {
    char bytes[NET_BYTES];
    int64_t n_bytes;
    char directory[128];
} saved;

static saved *all; /* [N_PLACES], shared: every place has a process of its own */
static int *n_pairs;
static bool is_all;

static bool open_place(int i, net *n)
{
    const net_options options = {.dtype = WEFT_F64};
    weft_error error = {0};
    return CHECK_OK(weft_world_open(&world, &error), error) &&
           CHECK_OK(net_open(&places[i], &options, n, &error), error);
}

static void save_one(const void *argument)
{
    const int from = *(const int *)argument;
    weft_error error = {0};
    net n;
    snprintf(all[from].directory, sizeof all[from].directory, "%s/pair%d", root, from);
    if (!open_place(from, &n)) return;
    CHECK_OK(net_run(&n, 1, 3, NULL, &error), error);
    all[from].n_bytes = net_read(&n, all[from].bytes);
    CHECK_OK(net_save(&n, all[from].directory, &error), error);
    net_close(&n);
}

static void restore_one(net *n, int from, int to)
{
    char bytes[NET_BYTES], text[200];
    weft_error error = {0};
    weft_checkpoint_state state = {0};
    CHECK_OK(net_restore(n, all[from].directory, WEFT_NEWEST, &state, &error), error);
    snprintf(text, sizeof text, "from %s %s to %s %s", places[from].mesh, places[from].layout,
             places[to].mesh, places[to].layout);
    weft_test_check(net_read(n, bytes) == all[from].n_bytes &&
                        memcmp(bytes, all[from].bytes, sizeof bytes) == 0,
                    __FILE__, __LINE__, text);
    CHECK(state.step == 3 && state.sample == 3 * BATCH && state.seed == UINT64_MAX - 5);
    ++*n_pairs;
}

static void restore_some(const void *argument)
{
    const int to = *(const int *)argument;
    net n;
    if (!open_place(to, &n)) return;
    for (int i = 0; i < (is_all ? (int)N_PLACES : (int)QUICK); i++)
        restore_one(&n, is_all ? i : (to + 7 + 11 * i) % (int)N_PLACES, to);
    net_close(&n);
}

static void test_every_place_restores_what_others_save(void)
{
    for (int from = 0; from < N_PLACES; from++)
        CHECK_EQ_INT(in_child(save_one, &from), 0);
    for (int to = 0; to < N_PLACES; to++)
        CHECK_EQ_INT(in_child(restore_some, &to), 0);
    printf("  %d pairs\n", *n_pairs);
    CHECK_EQ_INT(*n_pairs, N_PLACES * (is_all ? (int)N_PLACES : (int)QUICK));
}

int main(int n, char **arguments)
{
    is_all = n > 1 && strcmp(arguments[1], "--all") == 0;
    snprintf(root, sizeof root, "/tmp/weft-pairs-XXXXXX");
    if (!CAN_SAVE) {
        weft_test_skip("built without HDF5, which checkpoints are written with");
    } else if (CHECK(mkdtemp(root) != NULL) &&
               CHECK((all = share(N_PLACES * sizeof *all)) != MAP_FAILED) &&
               CHECK((n_pairs = share(sizeof *n_pairs)) != MAP_FAILED)) {
        RUN(test_every_place_restores_what_others_save);
        remove_folder(root);
    }
    return weft_test_report();
}
