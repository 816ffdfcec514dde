/* service.h: environment variables that are about a service of a cluster, and only look like options of ours.
 *
 * Kubernetes tells every container of every service beside it, in variables that begin with the service's name in
 * capitals: for one called "weft" these begin as our options do (WEFT_PORT=tcp://10.0.0.1:80), for one called
 * "weft-seed" with WEFT_SEED_. `docker run --link` writes the same, and two kinds more.
 */
#ifndef WEFT_APPS_SERVICE_H
#define WEFT_APPS_SERVICE_H

#include <stdbool.h>

/* service_link - whether "NAME=value" is one of them: both its name and its value have the form of one. Local. */
bool service_link(const char *variable);

#endif
