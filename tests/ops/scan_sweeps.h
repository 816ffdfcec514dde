/* scan_sweeps.h: cases of scans on every mesh, with and without their layouts, and with the trips written down. A test that
 * includes it has `oracle`, `cases` and N_CASES. */
static void test_meshes_agree(void)
{
    for (int c = 0; c < N_CASES; c++)
        for (int is_ruled = 0; is_ruled < 2; is_ruled++) {
            weft_oracle_case one = cases[c];
            if (!is_ruled) one.layout = NULL;
            weft_oracle_sweep(&oracle, &one, 3);
        }
}

static void test_trips_written_down_agree(void)
{
    static const weft_compile_options written = {.unroll = 64};
    for (int c = 0; c < N_CASES; c++) {
        weft_oracle_case one = cases[c];
        one.options = &written;
        one.layout = NULL;
        weft_oracle_sweep(&oracle, &one, 1);
    }
}
