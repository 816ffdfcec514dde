/* job.h: one training of gpt: what the settings say, made into a mesh, a layout, a graph and a
 * program. */
#ifndef WEFT_APPS_GPT_JOB_H
#define WEFT_APPS_GPT_JOB_H

#include "../app.h"
#include "../links.h"
#include "../run.h"
#include "model.h"
#include "weft/io.h"
#include "weft/optim.h"
#include "weft/program.h"

enum { GPT_VOCAB = 256 /* bytes */ };

typedef struct gpt_job {
    const settings *settings; /* borrowed */
    gpt_shape shape;
    int64_t steps, until; /* the schedule's length; the step after which to stop */
    weft_mesh *mesh;
    weft_layout *layout;
    weft_graph *graph;
    gpt_model model;
    int64_t parts;                     /* micro-batches a step; 1: the batch at once */
    weft_value *variables, *gradients; /* [gpt_n_variables] of parts, in one block; else NULL */
    weft_value loss, norm, rate, update;
    weft_program *program;
    weft_dataset *data;
    char data_path[4096];
    app_run run;
    app_link link;
} gpt_job;

/* gpt_job_check - settings to numbers; what the table of options cannot check by itself. Local. */
weft_status gpt_job_check(gpt_job *job, weft_error *error);
/* gpt_job_layout - the layout alone; the mesh must be there. Local. */
weft_status gpt_job_layout(gpt_job *job, weft_error *error);
/* gpt_job_build - layout and graph; the mesh must be there. Local. */
weft_status gpt_job_build(gpt_job *job, weft_error *error);
/* gpt_job_compile - the training program. Collective over the mesh. */
weft_status gpt_job_compile(gpt_job *job, weft_error *error);
/* gpt_job_data - open the text and bind it to the program. Local. */
weft_status gpt_job_data(gpt_job *job, weft_error *error);
void gpt_job_close(gpt_job *job);

/* gpt_train - the steps that are not done yet. Collective over the job. */
weft_status gpt_train(gpt_job *job, weft_error *error);

/* gpt_sample - print `bytes` bytes of generated text to stdout, from the root. Collective over the
 * job. By the variables of job->program; where there is none, by those of the newest checkpoint.
 * Draws are Philox numbers of the seed, so every mesh and layout writes the same text. */
weft_status gpt_sample(gpt_job *job, int64_t bytes, weft_error *error);

/* gpt_stored_defaults - for gpt sample: the model's options from the run.json of --run DIR. Local.
 */
weft_status gpt_stored_defaults(settings *s, weft_error *error);
/* gpt_stored_check - whether --run DIR has a checkpoint. Local. */
weft_status gpt_stored_check(gpt_job *job, weft_error *error);
/* gpt_stored_restore - the newest checkpoint's variables into a program. Collective over the mesh.
 */
weft_status gpt_stored_restore(const settings *s, weft_program *program, weft_error *error);

#endif
