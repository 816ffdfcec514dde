/* checkpoint_pairs_test: what is saved on one mesh and layout is restored on another to the bit;
 * thirty of them on one to eight ranks, with sizes that no mesh divides and boxes that are empty.
 *
 * --all: all 900 pairs.
 */
#include "checkpoint_net.h"

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

static saved all[N_PLACES];
static bool is_all;

static void save_one(int from)
{
    char name[32];
    net n;
    weft_error error = {0};
    snprintf(name, sizeof name, "pair%d", from);
    snprintf(all[from].directory, sizeof all[from].directory, "%s", scratch(name));
    const net_options options = {.dtype = WEFT_F64};
    if (CHECK_OK(net_open(&places[from], &options, &n, &error), error)) {
        CHECK_OK(net_run(&n, 1, 3, NULL, &error), error);
        all[from].n_bytes = net_read(&n, all[from].bytes);
        CHECK_OK(net_save(&n, all[from].directory, &error), error);
    }
    net_close(&n);
}

static int restore_all(int to)
{
    const net_options options = {.dtype = WEFT_F64};
    weft_error error = {0};
    int n_pairs = 0;
    net n;
    if (!CHECK_OK(net_open(&places[to], &options, &n, &error), error)) return 0;
    for (int i = 0; i < (is_all ? (int)N_PLACES : (int)QUICK); i++, n_pairs++) {
        const int from = is_all ? i : (to + 7 + 11 * i) % (int)N_PLACES;
        char bytes[NET_BYTES], text[200];
        weft_checkpoint_state state = {0};
        CHECK_OK(net_restore(&n, all[from].directory, WEFT_NEWEST, &state, &error), error);
        snprintf(text, sizeof text, "from %s %s to %s %s", places[from].mesh, places[from].layout,
                 places[to].mesh, places[to].layout);
        weft_test_check(net_read(&n, bytes) == all[from].n_bytes &&
                            memcmp(bytes, all[from].bytes, sizeof bytes) == 0,
                        __FILE__, __LINE__, text);
        CHECK(state.step == 3 && state.sample == 3 * BATCH && state.seed == UINT64_MAX - 5);
    }
    net_close(&n);
    return n_pairs;
}

static void test_every_place_restores_what_others_save(void)
{
    int n_pairs = 0;
    for (int from = 0; from < N_PLACES; from++)
        save_one(from);
    for (int to = 0; to < N_PLACES; to++)
        n_pairs += restore_all(to);
    printf("  %d pairs\n", n_pairs);
}

int main(int n, char **arguments)
{
    weft_error error = {0};
    is_all = n > 1 && strcmp(arguments[1], "--all") == 0;
    if (!CAN_SAVE)
        weft_test_skip("built without HDF5, which checkpoints are written with");
    else if (CHECK_OK(weft_world_open(&world, &error), error))
        RUN(test_every_place_restores_what_others_save);
    scratch_remove();
    weft_world_close();
    return weft_test_report();
}
