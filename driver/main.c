/* main.c - the door: finds the command, runs it, prints what it found. */
#include "base/plain.h"
#include "driver/commands.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define MACHINE "tS"
#define NETWORK "wPbHFsR12"
#define PLANNING "OJBprQle"

static const Command commands[] = {
    {"compile", "NET", MACHINE NETWORK PLANNING "GodagqjXEInfz2", cmd_compile,
     "Compiles a network for a machine.\n"
     "Writes NET.cmd (the listing), NET.json (the same with the data image)\n"
     "and, for weights that are not recipes, NET.weights; to the present\n"
     "folder, if -o names none.",
     NULL},
    {"simulate", "LISTING", MACHINE "siomgqjNL1", cmd_simulate,
     "Runs a listing and judges it.\n"
     "Takes .cmd text or .json: memory safety, bytes moved, cycles; with -o\n"
     "DIR the network's outputs are written as .npy.",
     "NAME.json beside NAME.cmd gives the weights and the layers of the host;\n"
     "without it weights are seeded and host layers are skipped."},
    {"verify", "NET", MACHINE NETWORK PLANNING "GixTdjNz", cmd_verify,
     "Compiles, simulates the listing, compares the values.\n"
     "Every kept layer is compared with the reference evaluation of the\n"
     "network as it was read; with --expect also the outputs of both with\n"
     "values that others computed.",
     NULL},
    {"eval", "NET", "wPbHF12sixTojCt", cmd_eval,
     "Computes what a network computes.\n"
     "By the reference evaluation, or --native; compares it with --expect; "
     "with\n"
     "-o DIR the outputs are written as .npy.",
     NULL},
    {"show", "NET", MACHINE NETWORK PLANNING "GAVodjEz", cmd_show,
     "Says what a network is, and what its plan holds when.\n"
     "With -t: step by step, which volumes are alive in active memory and how\n"
     "many bytes they take.",
     NULL},
    {"explore", "NET...", MACHINE NETWORK PLANNING "GyuDMkZoj", cmd_explore,
     "Tries networks on machines with all combinations of values.\n"
     "Compiles and simulates each point, and says which are the best.",
     "With -o DIR writes points.csv, points.jsonl and index.html. A run that\n"
     "was killed goes on with --resume DIR/points.jsonl; runs of several\n"
     "machines, each with its --shard, are put together by --merge FILES."},
    {"pack", "PROBLEM", "cKpoVBsj", cmd_pack,
     "Places buffers with lives and sizes in one memory.\n"
     "As low as possible, or anyhow within --capacity; says the lower bound,\n"
     "and what is proved.",
     "PROBLEM is a CSV as MiniMalloc has it: id,lower,upper,size and where\n"
     "wanted alignment, hint, gaps, offset (pinned there); and relations, "
     "pool,\n"
     "size:NAME, as docs/pack.md says. -o writes the same with offsets. The\n"
     "planner `all` compares all of them; the default is portfolio. What "
     "cannot\n"
     "fit is explained by an irreducible set of buffers."},
    {"check", "HWSPEC", "SUXj", cmd_check,
     "Checks a hwspec and says what machine it describes.\n"
     "A file, or a shipped target by name.",
     "--explain: of a machine with a container, how each field is read back\n"
     "and what its meanings can be."},
    {"asm", "LISTING", MACHINE "Woj3", cmd_asm,
     "Encodes a listing by the `bits` of the hwspec's rows.\n"
     "To LISTING.bin in the present folder, if -o names no file.",
     "Of a machine with a container: the text of a file becomes the file."},
    {"disasm", "FILE", MACHINE "oj", cmd_disasm,
     "Prints an encoded listing as text.\n"
     "On stdout, if -o names no file.",
     "Of a machine with a container: its files."},
    {"import", "FILE", "oj", cmd_import,
     "Makes a hwspec from a description of a DPU by Vitis AI.\n"
     "To NAME.yaml in the present folder, if -o names no file.",
     "FILE is the target's text, DPUCZDX8G_....prototxt; the hwspec extends\n"
     "dpuczdx8g, and says in a comment what it leaves out."},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void usage(FILE *to) {
    fputs("amphora compiles convolutional networks for accelerators with two\n"
          "levels of memory, described in one YAML file.\n\n"
          "usage: amphora COMMAND [arguments]\n\ncommands:\n",
          to);
    for (int i = 0; i < N_COMMANDS; i++) {
        int line = (int)strcspn(commands[i].doc, "\n");
        fprintf(to, "  %-9s %-8s %.*s\n", commands[i].name,
                commands[i].argument, line, commands[i].doc);
    }
    fputs("\nshipped machines:", to);
    Arena *arena = arena_new("usage");
    const char *const *name = hwspec_targets(arena);
    for (; name && *name; name++)
        fprintf(to, " %s", *name);
    arena_free(arena);
    fputs("\n\nEach command has --help; amphora --formats lists what networks\n"
          "can be read from. Exit codes: 0 ok, 1 bad input or wrong\n"
          "result, 2 usage, 3 does not fit, 70 a bug of ours.\n",
          to);
}

/* What can be read, in the order in which contents are looked at. */
static void print_formats(void) {
    printf("%-10s  %-30s  %s\n", "format", "suffixes", "what is read");
    for (uint32_t i = 0; i < n_formats; i++)
        printf("%-10s  %-30s  %s\n", formats[i].name, formats[i].suffixes,
               formats[i].doc);
    puts("\nA file is known by its content; its suffix counts only where the\n"
         "content says nothing, and one that does not fit is warned of.");
}

static const Command *find_command(const char *name) {
    for (int i = 0; i < N_COMMANDS; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

/* --json gives one object even when there is no result to report. A command
 * that printed its own object has left no error behind. */
static void print_failure(Arena *arena, const Diag *diag, ExitCode code) {
    static const char *const kind[] = {"error", "warning", "note"};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "ok", false);
    cJSON_AddNumberToObject(json, "exit", code);
    cJSON *list = cJSON_AddArrayToObject(json, "messages");
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *message = diag_at(diag, i);
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "kind", kind[message->kind]);
        if (message->loc.file)
            cJSON_AddStringToObject(item, "file", message->loc.file);
        if (message->loc.line)
            cJSON_AddNumberToObject(item, "line", message->loc.line);
        if (message->loc.col)
            cJSON_AddNumberToObject(item, message->loc.line ? "column" : "byte",
                                    message->loc.col);
        cJSON_AddStringToObject(item, "text", message->text);
        cJSON_AddItemToArray(list, item);
    }
    print_json(arena, json);
}

/* Looked for by itself: a usage error may stand in front of it. */
static bool wants_json(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--json"))
            return true;
    return false;
}

static ExitCode run_command(const Command *command, int argc, char **argv) {
    Arena *arena = arena_new("amphora");
    Diag *diag = diag_new(arena);
    Options options;
    ExitCode code = EXIT_BAD_USAGE;
    if (options_parse(arena, diag, command, argc, argv, &options)) {
        code = EXIT_FINE;
        if (options.help)
            options_help(command, stdout);
        else
            code = command->run(arena, diag, &options);
    }
    if (code && diag_errors(diag) && wants_json(argc, argv))
        print_failure(arena, diag, code);
    if (fflush(stdout) || ferror(stdout)) {
        diag_error(diag, (Loc){0}, "cannot write to stdout: %s",
                   strerror(errno));
        code = code ? code : EXIT_BAD_INPUT;
    }
    diag_print(diag, stderr);
    arena_free(arena);
    return code;
}

/* Plans are made by the dozen, each in an arena of its own: the C library gives
 * the memory of one to the next, and does not return it in between. */
static void keep_memory(void) {
#ifdef __GLIBC__
    enum { LARGEST_KEPT = 1 << 25, MOST_SPARE = 1 << 30 };
    mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT);
    mallopt(M_TRIM_THRESHOLD, MOST_SPARE);
#endif
}

int main(int argc, char **argv) {
    keep_memory();
    /* A file size limit is then an error of write(), which file_write reports
     * and cleans up after. */
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        usage(stderr);
        return EXIT_BAD_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        usage(stdout);
        return EXIT_FINE;
    }
    if (!strcmp(argv[1], "--formats")) {
        print_formats();
        return EXIT_FINE;
    }
    const Command *command = find_command(argv[1]);
    if (!command) {
        say_to(stderr, "amphora: no command %s\nTry `amphora --help`.\n",
               argv[1]);
        return EXIT_BAD_USAGE;
    }
    return (int)run_command(command, argc - 1, argv + 1);
}
