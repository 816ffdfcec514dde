/* fake_device.h: a device for tests, behind the same table as any other, that does all that a device may do:
 *
 * - The host cannot read its memory. One file in memory is mapped twice. Callers get the alias that nobody may touch,
 *   and a launched command is moved by a constant to the other one when it is executed.
 * - What is put onto a queue is copied and done later: when somebody waits, in a random order among all that are legal.
 * - Fresh memory is full of NaNs, and is never handed out again.
 * - Every command's memory has to be allocated when it is done. Two commands that no event puts in an order must not
 *   use the same bytes if one of them writes: a forgotten event is found, whatever the order happened to be.
 *
 * Its kernels and loops are the CPU's. A program that links fake_device.c makes its meshes on it when the environment has
 * TEST_DEVICE=fake, and ends with status 1 when something was found wrong.
 */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include "weft/device.h"

/* fake_device - the number of the device, which is there from the first call on. */
weft_device_kind fake_device(void);

/* fake_use - meshes that are made from now on are on it; false: on the CPU. */
void fake_use(bool is_used);

/* What the device does wrong from now on. */
typedef enum fake_fault {
    FAKE_SOUND = 0,
    FAKE_NO_FOLLOW,  /* queues do not wait for events of other queues  */
    FAKE_NO_WAIT,    /* the host does not wait for events               */
    FAKE_OPEN,       /* it says that the host sees its memory           */
    FAKE_NO_STAGING, /* it has no staging memory left                   */
    FAKE_BROKEN      /* what is asked of it fails                       */
} fake_fault;
void fake_plant(fake_fault fault);

/* Of what is done from now on, the next `n` commands of one rank's device take so many seconds each; INFINITY: for ever.
 * Whoever waits for the device by its own wait sleeps meanwhile. fake_sleeps_left - how many of them have not begun. */
void fake_sleep(double seconds, int n);
int fake_sleeps_left(void);

/* What was seen since fake_forget. */
typedef struct fake_facts {
    int64_t n_commands;
    int64_t n_combined;  /* those that combine */
    int64_t n_overtaken; /* done after one that was put onto another queue later */
    /* pairs of commands without an order that use the same bytes, and one writes */
    int64_t n_races;
    int64_t n_dead;  /* commands that use memory which is not taken */
    char first[240]; /* the first of those, in words; "" */
} fake_facts;
fake_facts fake_seen(void);
void fake_forget(void);

#endif
