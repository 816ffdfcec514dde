/* mnist: a perceptron, or a convolutional net, learns handwritten digits, or any images in folders of classes, on any mesh, under any
 * layout. Learns from the first 8000 images of the 10,000-image set, counts right answers on the last 2000; of folders it learns from four
 * fifths, or from their folder train.
 */
#include "../training.h"
#include "draw.h"
#include "images.h"
#include "model.h"

#include <string.h>
#include <unistd.h>

enum { LEARN = 8000, TEST = 2000, TEST_BATCH = 200 };
static const option options[] = {
    {"data", OPTION_TEXT, ".", "DIR", "Data",
     "folder of the t10k-* files, plain or .gz (mnist draw DIR makes some); or of folders of JPEG "
     "and "
     "PNG images, one a class"},
    {"size", OPTION_TEXT, "", "RxC", "Data",
     "scale images of folders to so many rows and columns, as 28x28; without it all have one size"},
    {"classes", OPTION_COUNT, "0", "N", "Data",
     "that labels are of, at most 256; 0: one more than the largest label", NULL, 0, 256},
    APP_HELD_OPTIONS("Data", "DIR",
                     "such a folder that nothing is learned from: all of its images"),
    {"seed", OPTION_COUNT, "1", "N", "Data", "of initial weights and the order of images"},
    APP_PLACE_OPTIONS("batch pixel hidden digit; of cnn row column channel feature too"),
    {"model", OPTION_CHOICE, "mlp", "NAME", "Model", "a perceptron, or filters and pools before it",
     "mlp cnn"},
    {"hidden", OPTION_COUNT, "256", "N", "Model", "width of the hidden layer", NULL, 1},
    {"channels", OPTION_COUNT, "16", "N", "Model",
     "cnn: of the first filters; those behind make twice as many", NULL, 1},
    {"dropout", OPTION_REAL, "0", "X", "Model", "probability of dropping a hidden number"},
    APP_DTYPE_OPTION,
    APP_LEARN_OPTIONS("800", "800 of 100 images are 10 epochs", "100", "images a step", "2e-3", "1",
                      "0", "0"),
    APP_CONTINUE_OPTIONS("runs/mnist"),
};
static const option_table table = {
    "mnist",
    "mnist [options]   learn digits from MNIST's t10k files, or images by folder, in\n"
    "                  --data DIR\n"
    "mnist draw DIR    write such files there, of digits drawn by a pen of ours\n"
    "mnist search --ranks N --machine FILE   find the quickest mesh and layout\n"
    "\n"
    "  mnist --data t10k --model cnn --mesh data:2,space:2 \\\n"
    "      --layout batch:data,row:space\n",
    options,
    sizeof options / sizeof *options,
    "learn handwritten digits by a perceptron or a convolutional net",
    "data mesh layout zero model hidden channels dropout steps batch optimizer rate run save-every "
    "config",
    "draw search"};

typedef struct own {
    int64_t classes;
    bool has_images; /* in folders, of this size; else in IDX files */
    mnist_images images;
} own;

static mnist_model build(const app_training *training, weft_graph *graph, bool learns,
                         int64_t batch)
{
    const settings *s = training->settings;
    const own *o = training->own;
    const mnist_shape shape = {
        .is_cnn = settings_is(s, "model", "cnn"),
        .batch = batch,
        .channels = settings_count(s, "channels"),
        .hidden = settings_count(s, "hidden"),
        .dropout = learns ? settings_real(s, "dropout") : 0,
        .dtype = app_training_dtype(training),
        .classes = o->classes,
        .rows = o->images.rows,
        .columns = o->images.columns,
        .colours = o->images.channels,
    };
    return mnist_build(graph, &shape);
}

static weft_value loss(app_training *training)
{
    const int64_t batch = settings_count(training->settings, "batch");
    return build(training, training->graph[APP_LEARNS], true, batch).loss;
}

/* Of images of a file; count 0: to its end. */
typedef struct part {
    const char *folder;
    int64_t first, count;
    bool shuffled;
} part;

static weft_status open_part(const app_training *training, const part *p, weft_dataset **data,
                             weft_error *error)
{
    char images[4096], labels[4096];
    const uint64_t seed = (uint64_t)settings_count(training->settings, "seed");
    snprintf(images, sizeof images, "%s/t10k-images-idx3-ubyte", p->folder);
    snprintf(labels, sizeof labels, "%s/t10k-labels-idx1-ubyte", p->folder);
    return weft_idx_open(images, labels, p->first, p->count, p->shuffled, seed, data, error);
}

/* Labels that are no classes would be ignored, images learned and not learned alike. */
static weft_status check_labels(app_training *training, weft_error *error)
{
    int64_t *classes = &((own *)training->own)->classes;
    *classes = settings_count(training->settings, "classes");
    for (int i = 0; i < APP_PROGRAMS && settings_count(training->settings, "classes") == 0; i++) {
        const int64_t highest = weft_dataset_highest(training->data[i], "label", error);
        if (highest < 0) return error->status;
        *classes = highest + 1 > *classes ? highest + 1 : *classes;
    }
    for (int i = 0; i < APP_PROGRAMS; i++)
        WEFT_TRY(weft_dataset_bound(training->data[i], "label", *classes, 0, error));
    return WEFT_OK;
}

/* Files that are not there can be had. */
static void say_draw(const app_training *training, weft_error *error)
{
    char images[4200];
    static const char way[] = "; mnist draw DIR draws some";
    const size_t used = strlen(error->message);
    snprintf(images, sizeof images, "%.4000s/t10k-images-idx3-ubyte",
             settings_text(training->settings, "data"));
    if (error->status == WEFT_IO && access(images, F_OK) != 0)
        snprintf(error->message + used, sizeof error->message - used, "%s", way);
}

/* A class that no image is of is one all the same. */
static weft_status check_classes(app_training *training, const char *folder, weft_error *error)
{
    own *o = training->own;
    const settings *s = training->settings;
    const long long asked = settings_count(s, "classes"), there = o->images.classes;
    const long long n = weft_dataset_samples(training->data[APP_LEARNS]);
    o->classes = asked > 0 ? asked : there;
    if (asked > 0 && asked < there)
        return weft_fail(
            error, WEFT_USAGE,
            "--classes %lld, and %.240s has %lld folders of classes; give as many, or 0", asked,
            folder, there);
    if (n < settings_count(s, "batch"))
        return weft_fail(
            error, WEFT_USAGE,
            "%.240s has %lld images to learn from, and --batch %lld takes more; give a "
            "smaller batch",
            folder, n, (long long)settings_count(s, "batch"));
    return WEFT_OK;
}

/* Of folders by class. */
static weft_status open_images(app_training *training, const char *folder, weft_error *error)
{
    own *o = training->own;
    const settings *s = training->settings;
    const uint64_t seed = (uint64_t)settings_count(s, "seed");
    o->has_images = true;
    WEFT_TRY(
        mnist_images_size(settings_text(s, "size"), &o->images.rows, &o->images.columns, error));
    WEFT_TRY(mnist_images_alike(folder, folder, error));
    WEFT_TRY(mnist_images_open(folder, MNIST_LEARNS, true, seed, &o->images,
                               &training->data[APP_LEARNS], error));
    mnist_images tested = o->images;
    WEFT_TRY(mnist_images_open(folder, MNIST_TESTS, false, 0, &tested, &training->data[APP_LOOKS],
                               error));
    WEFT_TRY(app_held_split(s, false, training->data[APP_LEARNS], error));
    return check_classes(training, folder, error);
}

static weft_status open_data(app_training *training, weft_error *error)
{
    const char *folder = settings_text(training->settings, "data");
    if (mnist_has_images(folder)) return open_images(training, folder, error);
    const part learn = {folder, 0, LEARN, true}, looked_at = {folder, LEARN, TEST, false};
    if (open_part(training, &learn, &training->data[APP_LEARNS], error) != WEFT_OK) {
        say_draw(training, error);
        return error->status;
    }
    WEFT_TRY(open_part(training, &looked_at, &training->data[APP_LOOKS], error));
    WEFT_TRY(app_held_split(training->settings, false, training->data[APP_LEARNS], error));
    return check_labels(training, error);
}

static weft_status hold_images(app_training *training, const char *folder, bool is_other,
                               weft_error *error)
{
    const own *o = training->own;
    mnist_images held = o->images;
    if (is_other)
        WEFT_TRY(mnist_images_alike(settings_text(training->settings, "data"), folder, error));
    return mnist_images_open(folder, is_other ? MNIST_WHOLE : MNIST_LEARNS, false, 0, &held,
                             &training->held.data, error);
}

/* Of another folder all images, or the last of those to learn from: the test's own are for the end. */
static weft_status hold(app_training *training, bool has_data, weft_error *error)
{
    app_held *held = &training->held;
    const settings *s = training->settings;
    const char *named = settings_text(s, "eval-data");
    const part p = {*named ? named : settings_text(s, "data"), 0, *named ? 0 : LEARN, false};
    const own *o = training->own;
    held->batch = settings_count(s, "batch");
    if (has_data) {
        WEFT_TRY(o->has_images ? hold_images(training, p.folder, *named, error)
                               : open_part(training, &p, &held->data, error));
        WEFT_TRY(app_held_split(s, true, held->data, error));
        WEFT_TRY(weft_dataset_bound(held->data, "label", o->classes, 0, error));
    }
    const mnist_model m = build(training, held->graph, false, held->batch);
    held->loss = m.loss;
    held->right = m.right;
    return WEFT_OK;
}

/* It is open; what was counted is said where it is no usual number. */
static weft_status opened(app_training *training, weft_error *error)
{
    const own *o = training->own;
    const long long classes = o->classes;
    (void)error;
    if (o->has_images && weft_mesh_is_root(training->mesh))
        printf("%lld images of %lld x %lld to learn from, %lld to look at\n",
               (long long)weft_dataset_samples(training->data[APP_LEARNS]),
               (long long)o->images.rows, (long long)o->images.columns,
               (long long)weft_dataset_samples(training->data[APP_LOOKS]));
    if (classes != 10 && weft_mesh_is_root(training->mesh)) printf("%lld classes\n", classes);
    return WEFT_OK;
}

static weft_status test(app_training *training, weft_error *error)
{
    double right = 0;
    const int64_t n = weft_dataset_samples(training->data[APP_LOOKS]);
    const int64_t batch = n < TEST_BATCH ? n : TEST_BATCH, n_batches = n / batch;
    WEFT_TRY(app_training_graph(training, error));
    const mnist_model m = build(training, training->graph[APP_LOOKS], false, batch);
    WEFT_TRY(app_training_look(training, WEFT_VALUES(m.right), error));
    weft_program *program = training->program[APP_LOOKS];
    (void)!weft_dataset_start(training->data[APP_LOOKS], program, error);
    WEFT_TRY(weft_world_agree(error));
    for (int64_t i = 0; i < n_batches; i++) {
        double some;
        WEFT_TRY(weft_dataset_next(training->data[APP_LOOKS], program, error));
        WEFT_TRY(weft_run(program, error));
        WEFT_TRY(weft_read_scalar(program, m.right, &some, error));
        right += some;
    }
    right /= (double)(n_batches * batch);
    if (weft_mesh_is_root(training->mesh)) printf("test accuracy %.2f %%\n", 100 * right);
    app_run_result(&training->run, "test_accuracy", right);
    return WEFT_OK;
}

static int draw(int n, char **arguments)
{
    weft_error error = {.rank = -1};
    if (n != 1 || arguments[0][0] == '-')
        weft_fail(&error, WEFT_USAGE, "draw wants one folder, which it makes: mnist draw DIR");
    else if (weft_world_is_root() && mnist_draw(arguments[0], &error) == WEFT_OK)
        printf("%s: 10000 digits; to learn them: mnist --data %s\n", arguments[0], arguments[0]);
    return app_leave(table.program, APP_STARTING, &error);
}

int main(int n, char **arguments)
{
    static const app_training_parts parts = {.table = &table,
                                             .hints = "data=batch space=row",
                                             .begin = open_data,
                                             .loss = loss,
                                             .open = opened,
                                             .hold = hold,
                                             .look = test};
    own o = {0};
    if (n > 1 && strcmp(arguments[1], "draw") == 0) return draw(n - 2, arguments + 2);
    return app_training_main(&parts, &o, n, arguments);
}
