/* test_recorded.c - the maker's own listings run without a violation. */
#include "tests/sim/harness.h"

#include "base/file.h"
#include "base/json.h"

#define FOLDER "../shared/data/listings/"

static Bytes read_whole(Bench *b, const char *name) {
    const char *path = arena_printf(b->arena, FOLDER "%s", name);
    Bytes bytes = {0};
    if (!file_read(b->arena, b->diag, path, &bytes))
        bench_fail(b);
    return bytes;
}

/* Lines of a JSON listing. Items that are not active were left out; tiled
 * ones lack their number. */
static void add_json(Bench *b, const char *name) {
    Bytes bytes = read_whole(b, name);
    cJSON *json = json_parse(b->diag, name, (const char *)bytes.at, bytes.len);
    if (!json)
        bench_fail(b);
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(json, "network")) {
        const char *line = json_str(item, "xdnn_instr", "");
        if (json_num(item, "active", 1) == 0 && line[0] != '#')
            continue;
        if (line[0] == 'X')
            line = arena_printf(b->arena, "%d %s",
                                (int)json_num(item, "schedule", 0), line);
        bench_text(b, arena_strdup(b->arena, line));
    }
    json_free(json);
}

static void add_file(Bench *b, const char *name) {
    Bytes bytes = read_whole(b, name);
    if (strstr(name, ".json"))
        add_json(b, name);
    else
        bench_lines(b, name, (const char *)bytes.at, bytes.len);
}

typedef struct Recorded {
    const char *file, *target;
    uint64_t instructions, am_peak, read; /* bytes */
} Recorded;

static void run_recorded(void **state) {
    const Recorded *r = *state;
    char path[256];
    snprintf(path, sizeof path, FOLDER "%s", r->file);
    if (!file_exists(path))
        skip();
    Bench *b = bench_open(r->target);
    add_file(b, r->file);
    b->options.memory_only = true;
    const SimResult *result = bench_run(b, 0, NULL);
    bench_clean(b);
    assert_int_equal(result->instructions, r->instructions);
    assert_int_equal(result->am_peak, r->am_peak);
    assert_int_equal(result->backing_read, r->read);
    assert_int_equal(result->n_notes, 1); /* where the input must be */
    bench_close(b);
}

static Recorded recorded[] = {
    {"googlenet_v1_28.json", "xdnn-v2-28", 73, 4194304, 301056},
    {"resnet50_28.json", "xdnn-v2-28", 73, 4194304, 301056},
    {"googlenet_v1_28.v1.3.cmd", "xdnn-v2-28", 71, 4194304, 0},
    {"mobilenet_28.cmd", "xdnn-v2-28", 28, 4128768, 0},
    {"resnet50_8bit_repl_pipe_xdnnv3.cmds", "xdnn-v3-96", 70, 7827456, 0},
    {"googlenet_v1_8b_autoNoOptimizations.cmds", "xdnn-v3-96", 71, 9437184, 0},
    {"googlenet_v1_8b_autoOnlyReplicationOptimization.cmds", "xdnn-v3-96", 71,
     9437184, 0},
    {"googlenet_v1_8b_autoAllOpt.json", "xdnn-v3-96", 69, 9437184, 150528},
    {"vai11_stdyolov2.json", "xdnn-v3-96", 24, 9437184, 4159280},
    {"vai11_segmentation.json", "xdnn-v3-96", 87, 9437184, 437106},
};

int main(void) {
    enum { N = sizeof recorded / sizeof *recorded };
    struct CMUnitTest tests[N];
    for (int i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){recorded[i].file, run_recorded, NULL,
                                       NULL, &recorded[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
