/* service: which environment variables a cluster wrote about a service.
 *
 * With NAME for the service's: NAME_SERVICE_HOST, NAME_SERVICE_PORT[_WORD], NAME_PORT, NAME_PORT_80_TCP and this with
 * _PROTO, _PORT and _ADDR; of Docker also NAME_NAME and, where there is that, NAME_ENV_WORD. A name alone would let
 * slips pass (WEFT_SEED_PORT=3), a value alone would too (WEFT_BACTH=80): both have to fit.
 */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", digits[] = "0123456789";
static const char of_address[] = "0123456789abcdefABCDEF:."; /* of IPv4 and IPv6 */
enum { MAX_WORD = 64 };

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_of(const char *text, const char *letters)
{
    return *text != '\0' && text[strspn(text, letters)] == '\0';
}

static bool is_port(const char *value)
{
    return is_of(value, digits) && strlen(value) <= 5 && atoi(value) >= 1 && atoi(value) <= 65535;
}

static bool is_address(const char *value)
{
    return is_of(value, of_address) && strpbrk(value, ":.") != NULL;
}

static bool is_protocol(const char *value)
{
    return strcmp(value, "tcp") == 0 || strcmp(value, "udp") == 0 || strcmp(value, "sctp") == 0;
}

/* "tcp://10.0.0.1:80", "tcp://[fd00::1]:80" */
static bool is_link(const char *value)
{
    char protocol[8], address[MAX_WORD];
    const char *host = strstr(value, "://"), *port = strrchr(value, ':');
    if (host == NULL || host - value >= (int)sizeof protocol || port <= host + 3) return false;
    host += 3;
    if (port - host >= MAX_WORD) return false;
    const bool in_brackets = *host == '[' && port[-1] == ']' && port - host > 2;
    snprintf(protocol, sizeof protocol, "%.*s", (int)(host - 3 - value), value);
    snprintf(address, sizeof address, "%.*s", (int)(port - host) - 2 * in_brackets,
             host + in_brackets);
    return is_protocol(protocol) && is_address(address) && is_port(port + 1);
}

/* "/web/database": a container and what it calls the other. */
static bool is_alias(const char *value)
{
    const char *second = *value == '/' ? strchr(value + 1, '/') : NULL;
    return second > value + 1 && second[1] != '\0';
}

static bool is_anything(const char *value)
{
    (void)value;
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Behind the service's name: * is letters, digits and _, # a number, @ a protocol. */
static const struct {
    const char *ending;
    bool (*is_value)(const char *value);
} forms[] = {
    {"_SERVICE_HOST", is_address}, {"_SERVICE_PORT", is_port},
    {"_SERVICE_PORT_*", is_port},  {"_PORT", is_link},
    {"_PORT_#_@", is_link},        {"_PORT_#_@_PROTO", is_protocol},
    {"_PORT_#_@_PORT", is_port},   {"_PORT_#_@_ADDR", is_address},
    {"_NAME", is_alias},           {"_ENV_*", is_anything},
};

static size_t length_of_protocol(const char *text)
{
    static const char *const all[] = {"TCP", "UDP", "SCTP"};
    for (int i = 0; i < 3; i++)
        if (strncmp(text, all[i], strlen(all[i])) == 0) return strlen(all[i]);
    return 0;
}

static bool fits(const char *text, const char *form)
{
    for (; *form != '\0'; form++) {
        const size_t n = *form == '*'   ? strlen(text)
                         : *form == '#' ? strspn(text, digits)
                         : *form == '@' ? length_of_protocol(text)
                                        : (size_t)(*text == *form);
        if (n == 0) return false;
        text += n;
    }
    return *text == '\0';
}

/* Of NAME_ENV_WORD, whose value may be anything: is NAME a link at all? */
static bool is_alias_there(const char *name, size_t n)
{
    char alias[2 * MAX_WORD];
    snprintf(alias, sizeof alias, "%.*s_NAME", (int)n, name);
    const char *value = getenv(alias);
    return value != NULL && is_alias(value);
}

bool service_link(const char *variable)
{
    char name[4 * MAX_WORD];
    const char *equals = strchr(variable, '=');
    if (equals == NULL || equals - variable >= (int)sizeof name) return false;
    snprintf(name, sizeof name, "%.*s", (int)(equals - variable), variable);
    if (strspn(name, capitals) == 0) return false;
    for (const char *at = strchr(name, '_'); at != NULL; at = strchr(at + 1, '_'))
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
            if (fits(at, forms[f].ending) && forms[f].is_value(equals + 1) &&
                (forms[f].is_value != is_anything || is_alias_there(name, (size_t)(at - name))))
                return true;
    return false;
}
