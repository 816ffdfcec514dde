/* link.h: the engine, and how many exchanges and bytes it has carried. */
#ifndef LINK_H
#define LINK_H

#include <weft.h>
#include <weft/extend/engine.h>

extern const weft_engine link_engine;

typedef struct link_total {
    long long exchanges, bytes; /* that ranks of this process had under way, and sent to others */
    double seconds; /* that those take which wait for nobody: bytes / bandwidth + latency */
} link_total;
link_total link_carried(void);

#endif
