/* parquet_show: all records of a file, one field a line, for tests that compare them with what another library read. */
#include <stdio.h>
#include <stdlib.h>

#include "source/records.h"

static void show(const weft_records *records, int64_t i, int f)
{
    const weft_record_field *field = weft_records_field(records, f);
    int64_t dims[WEFT_RECORD_DIMS], n = 1;
    weft_error error = WEFT_NO_ERROR;
    if (weft_records_shape(records, i, f, dims, &error) != WEFT_OK) {
        printf("! %s\n", error.message);
        return;
    }
    for (int d = 0; d < field->n_dims; d++)
        n *= dims[d];
    char *to = malloc((size_t)n * weft_dtype_bytes(field->dtype) + 8);
    if (weft_records_read(records, i, f, 0, n, to, &error) != WEFT_OK)
        printf("! %s", error.message);
    printf("%s", field->name);
    for (int64_t k = 0; k < n && error.status == WEFT_OK; k++) {
        if (field->dtype == WEFT_U8) printf(" %d", (unsigned char)to[k]);
        if (field->dtype == WEFT_I32) printf(" %d", ((int32_t *)(void *)to)[k]);
        if (field->dtype == WEFT_I64) printf(" %lld", (long long)((int64_t *)(void *)to)[k]);
        if (weft_dtype_is_float(field->dtype))
            printf(" %.17g", weft_dtype_get(field->dtype, to, k));
    }
    printf("\n");
    free(to);
}

int main(int argc, char **argv)
{
    for (int a = 1; a < argc; a++) {
        weft_error error = WEFT_NO_ERROR;
        weft_records *records = NULL;
        if (weft_records_open(argv[a], NULL, &records, &error) != WEFT_OK)
            printf("! %s\n", error.message);
        for (int64_t i = 0; i < weft_records_count(records); i++)
            for (int f = 0; f < weft_records_fields(records); f++)
                show(records, i, f);
        weft_records_close(&records);
        printf("= %s\n", argv[a]);
    }
    return 0;
}
