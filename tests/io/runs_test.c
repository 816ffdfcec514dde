/* runs_test: a box's runs within any range of its frame are those that going through all elements
 * finds. */
#include "checkpoint/runs.h"
#include "test.h"

enum { MOST = 4 * 5 * 6 };

/* Element by element: where each place of [begin, end) lies in the box, -1 for outside. */
static void find_plainly(const weft_box *frame, const weft_box *box, int64_t begin, int64_t end,
                         int64_t *inner)
{
    int64_t at = 0, next = 0, index[3];
    for (index[0] = frame->begin[0]; index[0] < frame->end[0]; index[0]++)
        for (index[1] = frame->begin[1]; index[1] < frame->end[1]; index[1]++)
            for (index[2] = frame->begin[2]; index[2] < frame->end[2]; index[2]++, at++) {
                bool is_in = true;
                for (int d = 0; d < 3; d++)
                    is_in = is_in && index[d] >= box->begin[d] && index[d] < box->end[d];
                inner[at] = is_in && at >= begin && at < end ? next : -1;
                next += is_in;
            }
}

static bool is_same(const weft_box *frame, const weft_box *box, int64_t begin, int64_t end)
{
    int64_t plain[MOST], cut_at[MOST];
    find_plainly(frame, box, begin, end, plain);
    for (int i = 0; i < MOST; i++)
        cut_at[i] = -1;
    weft_box_runs runs = weft_box_runs_of(3, frame, box);
    weft_box_runs_seek(&runs, begin);
    for (weft_box_cut cut; weft_box_runs_cut(&runs, begin, end, &cut);)
        for (int64_t i = 0; i < cut.count; i++)
            cut_at[cut.at + i] = cut.inner + i;
    return memcmp(plain, cut_at, sizeof plain) == 0;
}

static void test_any_range_of_any_box(void)
{
    const weft_box frame = {{1, 0, 2}, {5, 5, 8}}; /* 4 x 5 x 6 */
    static const int64_t begins[][3] = {{1, 0, 2}, {2, 0, 2}, {1, 1, 2},
                                        {1, 0, 3}, {2, 3, 4}, {4, 4, 7}};
    static const int64_t ends[][3] = {{5, 5, 8}, {4, 5, 8}, {5, 4, 8},
                                      {5, 5, 7}, {5, 5, 8}, {4, 5, 8}};
    int n_wrong = 0;
    for (size_t b = 0; b < sizeof begins / sizeof *begins; b++) {
        for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
            weft_box box = {{0}, {0}};
            for (int d = 0; d < 3; d++) {
                box.begin[d] = begins[b][d];
                box.end[d] = ends[e][d] > begins[b][d] ? ends[e][d] : begins[b][d];
            }
            for (int64_t begin = 0; begin <= MOST; begin++)
                for (int64_t end = begin; end <= MOST; end += 7)
                    n_wrong += !is_same(&frame, &box, begin, end);
        }
    }
    CHECK_EQ_INT(n_wrong, 0);
}

static void test_a_scalar_is_one_run(void)
{
    const weft_box scalar = {{0}, {0}};
    weft_box_runs runs = weft_box_runs_of(0, &scalar, &scalar);
    weft_box_cut cut = {0};
    weft_box_runs_seek(&runs, 0);
    CHECK(weft_box_runs_cut(&runs, 0, 1, &cut));
    CHECK(cut.at == 0 && cut.inner == 0 && cut.count == 1);
    CHECK(!weft_box_runs_cut(&runs, 0, 1, &cut));
}

int main(void)
{
    RUN(test_any_range_of_any_box);
    RUN(test_a_scalar_is_one_run);
    return weft_test_report();
}
