/* planted_machine.h: machines on which a training is worse than it could be: rates and links that are written down. */
#ifndef TEST_PLANTED_MACHINE_H
#define TEST_PLANTED_MACHINE_H

#include <stdio.h>

typedef struct machine_facts {
    double flops, bytes; /* a second, of a rank */
    double step;         /* of a step that does nothing */
    double near, far;    /* links within pairs of ranks, and beyond: bytes a second */
    double latency;
    double cpu; /* the part of a rank that an exchange takes: 1: nothing is hidden */
} machine_facts;

/* All links are as fast as memory, and steps cost nothing of their own. */
static const machine_facts even = {1e11, 1e11, 0, 1e10, 1e10, 1e-6, 0};
static const machine_facts far_is_slow = {1e10, 1e11, 0, 1e10, 1e8, 1e-6, 1};
static const machine_facts slow_links = {1e11, 1e11, 0, 1e8, 1e8, 1e-6, 1};
static const machine_facts dear_steps = {1e12, 1e12, 1e-4, 1e10, 1e10, 1e-6, 0};

/* As a machine's file has it. */
static inline void planted_text(const machine_facts *m, char *text, size_t room)
{
    snprintf(
        text, room,
        "{\"weft_machine\": 1, \"name\": \"planted\", \"processor\": \"paper\", \"made\": \"by "
        "hand\", \"cores\": 64, \"spread\": 0, \"loads\": [{\"ranks\": 1, \"lanes\": 1, "
        "\"step_seconds\": %g, \"flops_per_second\": {\"f32\": [[1, %g]]}, "
        "\"bytes_per_second\": [[1, %g]], \"act_seconds\": {\"other\": 0}, \"kernels\": []}], "
        "\"levels\": [{\"name\": \"near\", \"ranks\": 2, \"latency_seconds\": %g, "
        "\"bytes_per_second\": %g, \"cpu\": %g}, {\"name\": \"far\", \"ranks\": 0, "
        "\"latency_seconds\": %g, \"bytes_per_second\": %g, \"cpu\": %g}], \"exchanges\": []}",
        m->step, m->flops, m->bytes, m->latency, m->near, m->cpu, m->latency, m->far, m->cpu);
}

#endif
