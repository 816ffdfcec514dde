/* kept_open: between Open MPI and libc's dlclose, in LD_PRELOAD of processes that a sanitizer watches: libraries stay loaded,
 * so that it can name who allocated what was never freed. */
__attribute__((visibility("default"))) int dlclose(void *library);

int dlclose(void *library)
{
    (void)library;
    return 0;
}
