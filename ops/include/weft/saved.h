/* saved.h: programs in files: a graph, its outputs, and how it was run, for programs without the code that built it.
 *
 *     weft_saving what = {.outputs = WEFT_VALUES(logits), .mesh = "data:2", .layout = "batch:data"};
 *     WEFT_TRY(weft_graph_save(graph, "net.weft", &what, error));
 *
 *     const weft_saved *saved;                                          elsewhere, later
 *     WEFT_TRY(weft_graph_load("net.weft", &graph, &saved, error));
 *     WEFT_TRY(weft_compile(mesh, layout, saved->outputs, NULL, &program, error));
 *     WEFT_TRY(weft_checkpoints_restore(...));                          variables: a checkpoint's, by their names
 *
 * The file is text, a node a line, with a digest of it all at its end; numbers are exact. It has types, ops with their
 * attributes, scans, names, placements, initial values and where in the old program each node was asked for. It has no
 * plan: who loads it compiles it, for any mesh and layout, on the machine as it is. On the mesh and layout of old the
 * program's digest is the old one, and so are the bits of its results.
 *
 * Files of a Weft are read by all later ones. Ops from outside are kept by name and version: their plug-in is to be there.
 *
 * All functions are Local.
 */
#ifndef WEFT_SAVED_H
#define WEFT_SAVED_H

#include "weft/graph.h"

WEFT_BEGIN

/* Facts to save with a graph. Texts may be NULL: none. They are kept as they are, for those who load. */
typedef struct weft_saving {
    weft_values outputs; /* what is read, and updates that are carried out; at least one */
    const char *mesh, *layout, *checkpoint;
    /* for inference: dropout is off, batch_norm takes its averages; gradients that were custom, and not taken, are let go. The
     * file has only what outputs need: labels, gradients, updates and slots are left out */
    bool is_frozen;
} weft_saving;

/* Facts that were saved with a graph, which owns them. */
typedef struct weft_saved {
    weft_values outputs;
    const char *mesh, *layout, *checkpoint; /* NULL: none */
    bool is_frozen;
    int version; /* of the file's form */
    weft_values
        inputs; /* all of the graph: what is written before a run, as far as outputs need it */
} weft_saved;

/* weft_graph_save - write the graph to a file, which is there whole or not at all.
 *
 * refused  a graph with an error, or with a scan or a part that has not ended; a custom gradient that nothing has taken yet,
 *          since its rule is code; names with line breaks */
WEFT_API WEFT_MUST_CHECK weft_status weft_graph_save(const weft_graph *graph, const char *path,
                                                     const weft_saving *what, weft_error *error);
/* weft_graph_load - a graph from such a file; building goes on with it as with any.
 *
 * graph    out; yours: weft_graph_destroy
 * saved    out; the graph's
 * refused  what is no saved program, was changed or cut off, is of a later form, has an op that is not there or is there in
 *          another version; what the ops themselves refuse. The sentence names the line. Whoever makes the digest anew says
 *          that he vouches for the numbers in the file: types are then checked by the ops, not all attributes */
WEFT_API WEFT_MUST_CHECK weft_status weft_graph_load(const char *path, weft_graph **graph,
                                                     const weft_saved **saved, weft_error *error);

WEFT_END

#endif
