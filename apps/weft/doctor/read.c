/* read: what files of /proc and /sys say. A line has no longest one, and is one line however long it is. */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "weft/number.h"

bool doctor_read(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool is_read = fgets(text, (int)bytes, file) != NULL;
    fclose(file);
    if (is_read) text[strcspn(text, "\n")] = '\0';
    return is_read;
}

bool doctor_read_number(const char *path, double *number)
{
    char text[64];
    double by;
    if (!doctor_read(path, text, sizeof text)) return false;
    const int length = weft_number_read(text, number);
    (void)weft_number_read(text + length, &by);
    if (length > 0 && by > 0) *number /= by; /* cpu.max: "200000 100000" is 2 */
    return length > 0;
}

void doctor_mount_options(const char *mounts, unsigned int major, unsigned int minor, char *options,
                          size_t bytes)
{
    char *line = NULL, device[32];
    size_t room = 0;
    FILE *file = fopen(mounts, "re");
    *options = '\0';
    snprintf(device, sizeof device, " %u:%u ", major, minor);
    while (file && getline(&line, &room, file) >= 0) {
        const char *rest = strstr(line, " - "), *at = strstr(line, device);
        if (rest && at && at <= rest) snprintf(options, bytes, "%s", rest + 3);
    }
    if (file) fclose(file);
    free(line);
    options[strcspn(options, "\n")] = '\0';
}

bool doctor_line_has(const char *path, const char *begin, const char *word)
{
    char *line = NULL;
    size_t room = 0;
    bool is_there = false;
    FILE *file = fopen(path, "re");
    while (file && !is_there && getline(&line, &room, file) >= 0)
        is_there = strncmp(line, begin, strlen(begin)) == 0 && strstr(line, word);
    if (file) fclose(file);
    free(line);
    return is_there;
}

double doctor_line_number(const char *path, const char *begin)
{
    char *line = NULL;
    size_t room = 0;
    double number = 0;
    FILE *file = fopen(path, "re");
    while (file && number == 0 && getline(&line, &room, file) >= 0)
        if (strncmp(line, begin, strlen(begin)) == 0)
            (void)weft_number_read(line + strlen(begin), &number);
    if (file) fclose(file);
    free(line);
    return number;
}
