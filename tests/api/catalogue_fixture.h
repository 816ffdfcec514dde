/* catalogue_fixture.h: what good arguments are made of: a graph, programs, exchanges, files, all small. */
#ifndef TEST_CATALOGUE_FIXTURE_H
#define TEST_CATALOGUE_FIXTURE_H

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "catalogue_test: %s: %s\n", #call, f->error.message);                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void make_dims(fixture *f)
{
    f->row = (weft_dim){"row", 4};
    f->column = (weft_dim){"column", 6};
    f->fresh = (weft_dim){"fresh", 6};
    f->two = (weft_dim){"two", 2};
    f->both = (weft_dim){"both", 12};
    f->entry = (weft_dim){"entry", 5};
    f->query = (weft_dim){"query", 3};
    f->memory = (weft_dim){"memory", 5};
    f->feature = (weft_dim){"feature", 4};
    f->rows_only = weft_shape_make(&f->row, 1);
    f->turned = weft_shape_make((const weft_dim[]){f->column, f->row}, 2);
    f->flat = weft_shape_make((const weft_dim[]){{"flat", 24}}, 1);
}

#define SHAPE(...)                                                                                 \
    weft_shape_make((const weft_dim[]){__VA_ARGS__},                                               \
                    (int)(sizeof((const weft_dim[]){__VA_ARGS__}) / sizeof(weft_dim)))

static void make_graph(fixture *f)
{
    weft_graph *g = f->graph = weft_graph_create(7);
    f->other_graph = weft_graph_create(8);
    f->spare_graph = weft_graph_create(9);
    f->x = weft_input(g, "x", WEFT_F64, SHAPE(f->row, f->column));
    f->ids = weft_input(g, "ids", WEFT_I32, SHAPE(f->row));
    f->w = weft_variable(g, "w", WEFT_F64, SHAPE(f->column), weft_constant_of(1));
    f->gain = weft_variable(g, "gain", WEFT_F64, SHAPE(f->column), weft_constant_of(1));
    f->table = weft_variable(g, "table", WEFT_F64, SHAPE(f->entry, f->column), weft_normal(0, 1));
    f->rows = weft_input(g, "rows", WEFT_F64, SHAPE(f->row, f->column));
    f->queries = weft_variable(g, "q", WEFT_F64, SHAPE(f->query, f->feature), weft_normal(0, 1));
    f->keys = weft_variable(g, "k", WEFT_F64, SHAPE(f->memory, f->feature), weft_normal(0, 1));
    f->flags = weft_greater(f->x, f->rows);
    f->loss = weft_mean(weft_square(weft_mul(f->x, f->w)));
    f->slot = weft_slot(f->w, "kept", weft_constant_of(0));
    f->update = weft_assign(f->w, weft_scale(f->w, 0.5));
    f->other = weft_input(f->other_graph, "x", WEFT_F64, SHAPE(f->row, f->column));
    f->one_loss[0] = f->loss;
    f->one_weight[0] = f->w;
    f->site = (weft_site){.op = &kept_op, .n_in = 1, .n_out = 1};
    f->site.in[0] = f->site.out[0] = (weft_type){WEFT_F64, SHAPE(f->row, f->column)};
    f->working = (weft_update){.name = "sgd", .graph = g, .run = f->loss, .rate = f->loss};
    f->losses = (weft_values){f->one_loss, 1};
    f->weights = (weft_values){f->one_weight, 1};
}

static void make_programs(fixture *f)
{
    weft_error *error = &f->error;
    const weft_compile_options explained = {.explain = true};
    weft_lanes_choose(1);
    MUST(weft_world_open(&f->world, error));
    MUST(weft_extend_op(&kept_op, error));
    MUST(weft_mesh_create(&f->world, "data:1", &f->mesh, error));
    MUST(weft_mesh_create(&f->world, "data:1", &f->spare_mesh, error));
    MUST(weft_mesh_plan("data:2,model:2", &f->planned_mesh, error));
    MUST(weft_layout_create("row:data", &f->layout, error));
    MUST(weft_layout_create("row:data", &f->spare_layout, error));
    make_graph(f);
    MUST(weft_compile(f->mesh, f->layout, f->losses, &explained, &f->program, error));
    MUST(weft_compile(f->mesh, f->layout, f->losses, NULL, &f->spare_program, error));
    MUST(weft_compile(f->planned_mesh, f->layout, f->losses, &explained, &f->planned_program,
                      error));
    MUST(weft_write(f->program, f->x, WEFT_F64, f->numbers, sizeof f->numbers, error));
    MUST(weft_run(f->program, error));
}

static void make_exchanges(fixture *f)
{
    weft_error *error = &f->error;
    weft_spec_box(&f->step.from, f->mesh, &f->turned, 0, (weft_box *)(void *)f->buffer);
    f->step.kind = WEFT_ALL_GATHER;
    f->step.axes = 1;
    f->step.from.n_split[0] = 1; /* column is split over data */
    f->part = (weft_move_part){&f->turned, f->step};
    for (int d = 0; d < f->turned.n_dims; d++)
        f->whole[0].end[d] = f->turned.dims[d].size;
    f->boxes = (weft_move_boxes){&f->turned, WEFT_F64, f->whole, f->whole};
    f->moved = (weft_move_memory){f->numbers, f->buffer};
    MUST(weft_comms_create(f->mesh, &f->comms, error));
    MUST(weft_comms_prepare(f->comms, 1, error));
    f->comm = weft_comm_of(f->comms, 0, 1);
    MUST(weft_exchange_take(f->comm, &f->exchange, error));
    MUST(weft_move_create(f->mesh, &f->turned, WEFT_F64, &f->step, 0, &f->move, error));
    MUST(weft_flight_create(f->move, f->comm, &f->flight, error));
    MUST(weft_flight_create(f->move, f->comm, &f->started, error));
    MUST(weft_flight_start(f->started, f->numbers, f->buffer, f->buffer + 1024, error));
}

/* Files of names that are no path land there, and go with the folder. */
static int go_below(const char *folder, const char *below)
{
    char between[96];
    snprintf(between, sizeof between, "%s/a", folder);
    return mkdir(between, 0700) == 0 && mkdir(below, 0700) == 0 ? chdir(below) : -1;
}

static void make_files(fixture *f)
{
    weft_error *error = &f->error;
    const weft_checkpoint_state state = {.step = 1};
    snprintf(f->folder, sizeof f->folder, "/tmp/weft_catalogue_XXXXXX");
    char below[96];
    if (mkdtemp(f->folder) == NULL) exit(1);
    snprintf(below, sizeof below, "%s/a/b", f->folder); /* ".." and "../.." are its own too */
    if (go_below(f->folder, below) != 0) exit(1);
    snprintf(f->book, sizeof f->book, "%s/book", f->folder);
    snprintf(f->words, sizeof f->words, "%s/words", f->folder);
    snprintf(f->run, sizeof f->run, "%s/run", f->folder);
    snprintf(f->fresh_run, sizeof f->fresh_run, "%s/fresh", f->folder);
    snprintf(f->records, sizeof f->records, "%s/records", f->folder);
    snprintf(f->exported, sizeof f->exported, "%s/exported.h5", f->folder);
    snprintf(f->saved, sizeof f->saved, "%s/saved", f->folder);
    snprintf(f->saved_to, sizeof f->saved_to, "%s/saved_to", f->folder);
    f->saving.outputs = f->losses;
    MUST(weft_graph_save(f->graph, f->saved, &f->saving, error));
    FILE *book = fopen(f->book, "w");
    for (int i = 0; book != NULL && i < 100; i++)
        fputs("a line of text\n", book);
    if (book == NULL || fclose(book) != 0 || mkdir(f->records, 0700) != 0) exit(1);
    const int32_t words[WEFT_TOKENS_HEAD + 8] = {WEFT_TOKENS_MAGIC, WEFT_TOKENS_VERSION, 16};
    FILE *tokens = fopen(f->words, "wb");
    if (tokens == NULL || fwrite(words, sizeof words, 1, tokens) != 1 || fclose(tokens) != 0)
        exit(1);
    MUST(weft_watch_record(f->records, error));
    MUST(weft_postmortem_open(f->records, &f->postmortem, error));
    MUST(weft_live_open(f->records, &f->live, error));
    MUST(weft_machine_model_read("laptop", &f->machine, error));
    const weft_trace_part traced = {f->program, "program", 1};
    f->trace_part = (weft_trace_part){f->spare_program, "spare", 1};
    snprintf(f->ring, sizeof f->ring, "%s/rank_00000.ring", f->records);
    MUST(weft_trace_begin(f->records, &traced, 1, &f->trace, error));
    MUST(weft_text_open(f->book, 4, 1, &f->dataset, error));
    MUST(weft_chain_open(f->book, NULL, &f->chain, error));
    MUST(weft_checkpoints_open(f->run, NULL, &f->checkpoints, error));
    MUST(weft_checkpoints_save(f->checkpoints, f->program, &state, error));
    MUST(weft_checkpoints_wait(f->checkpoints, error));
    MUST(weft_stored_open(f->run, &f->stored, error));
}

static void remove_files(const fixture *f)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    (void)!system(command);
}

#endif
