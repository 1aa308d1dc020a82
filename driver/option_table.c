/* option_table.c - the options of all commands, their help, and what is known
 * of each; see options.h. */
#include "driver/option_table.h"

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(Options, member)

const Option option_table[] = {
    {'t', false, "target", "TARGET", OPTION_TARGET, AT(target),
     "a shipped machine by name, or a hwspec by path"},
    {'o', false, "output", "PATH", OPTION_TEXT, AT(out),
     "folder (asm, disasm, import, pack, show: file) to write to"},
    {0, false, "set", "PATH=VALUE", OPTION_SETTING, 0,
     "override a scalar of the hwspec: memories.am.size=2MiB"},
    {0, false, "vary", "PATH=a,b,c or PATH=lo:hi:step", OPTION_VARY, 0,
     "values of a scalar of the hwspec, or of replication, mode, order, "
     "planner, "
     "side-by-side, objective, effort"},
    {0, false, "goal", "'ms(NET) <= 2, ...'", OPTION_TEXT, AT(goal),
     "search the varied values for machines that meet this, not all of them"},
    {0, false, "minimise", "FIGURE", OPTION_TEXT, AT(minimise),
     "... and have the least of it: cost.NAME, ms, ddr_bytes, ms(NET)"},
    {0, false, "maximise", "FIGURE", OPTION_TEXT, AT(maximise),
     "... or the most"},
    {0, true, "rising", "PATH", OPTION_RISING, 0,
     "of a search: more of this is never slower and moves no more bytes; "
     "assumed of sizes and bandwidths of memories; none: of nothing"},
    {0, true, "most-points", "N", OPTION_COUNT, AT(most_points),
     "a search compiles at most so many points"},
    {0, true, "submit", "slurm|parallel|none", OPTION_WORD, AT(submit),
     "give the shards of the sweep to Slurm or GNU parallel, and merge them in "
     "-o DIR"},
    {0, true, "shards", "N", OPTION_COUNT, AT(shards),
     "so many of them (default 16)"},
    {0, true, "hosts", "FILE", OPTION_TEXT, AT(hosts),
     "computers for --submit parallel, a line each, as its --sshloginfile"},
    {0, true, "resume", "FILE", OPTION_TEXT, AT(resume),
     "points.jsonl of a run that was stopped"},
    {0, true, "shard", "i/n", OPTION_TEXT, AT(shard),
     "only every n-th point, from the i-th"},
    {0, true, "merge", NULL, OPTION_FLAG, AT(merge),
     "the arguments are points.jsonl files: put them together"},
    {0, true, "jobs", "N", OPTION_NUMBER, AT(jobs),
     "processes (default: one for each core)"},
    {0, false, "weights", "FILE", OPTION_TEXT, AT(weights),
     "trained weights, where they are in a file of their own"},
    {0, true, "phase", "PHASE", OPTION_TEXT, AT(phase),
     "TEST (default) or TRAIN"},
    {0, true, "batch", "N", OPTION_COUNT, AT(batch),
     "images at once (default 1)"},
    {0, true, "shape", "NAME=1x3x224x224", OPTION_SHAPE, 0,
     "shape of an input that the file leaves open"},
    {0, true, "seed", "N", OPTION_NUMBER, AT(seed),
     "for weights and inputs that are not given (default 1)"},
    {0, false, "order", "NAME", OPTION_TEXT, AT(order),
     "file (default), best, dfs, random or enumerate"},
    {0, true, "side-by-side", "peak|steps|time", OPTION_TEXT, AT(side),
     "let engines run side by side, for the least of it (order: best)"},
    {0, true, "objective", "balanced|time|bytes", OPTION_WORD, AT(objective),
     "what the plan is to have least of (default balanced: 3 ln(cycles) + "
     "ln(bytes))"},
    {0, true, "effort", "N", OPTION_NUMBER, AT(effort),
     "how long to search for it: 0 (milliseconds) to 3 (minutes); default 1"},
    {0, true, "progress", NULL, OPTION_FLAG, AT(progress),
     "tell on stderr, in a line for each size searched, how far the search is "
     "(on a terminal --effort 3 shows it)"},
    {0, true, "front", NULL, OPTION_FLAG, AT(front),
     "print all plans that were found and that no other beats"},
    {0, true, "budget", "N", OPTION_NUMBER, AT(budget),
     "looks at layers before a search of orders gives up; pack: steps"},
    {0, false, "seconds", "X", OPTION_REAL, AT(seconds),
     "of search, and then the best so far; without --budget no other end"},
    {0, false, "capacity", "BYTES", OPTION_BYTES, AT(capacity),
     "of the memory: what fits into it is good enough"},
    {0, false, "pool", "NAME=BYTES", OPTION_POOL, 0,
     "a memory, in the order of preference; :align=N, :partition=N (bytes of "
     "each part with a port of its own), :cost=N (of each byte there) may "
     "follow"},
    {0, false, "orders", NULL, OPTION_FLAG, AT(orders),
     "compare the strategies: peak, steps, lower bound, proof, time"},
    {0, true, "svg", "FILE", OPTION_TEXT, AT(svg),
     "pack, show -t: draw what lies where; show --orders: the bytes alive by "
     "step, in the file's order and the best"},
    {0, false, "planner", "NAME", OPTION_TEXT, AT(planner),
     "planner of active memory (default auto)"},
    {0, true, "replication", "off|safe|best|FILE", OPTION_TEXT, AT(replication),
     "copies of partial channel sections (default safe); FILE: lines of layer, "
     "full sections, replicated ones, copies, width"},
    {0, true, "reports", "front|all|none", OPTION_TEXT, AT(reports),
     "with -o: the points whose reports are written and linked (default "
     "front)"},
    {0, true, "mode", "latency|throughput", OPTION_TEXT, AT(mode),
     "what to compile for: one image (default), or images one behind the "
     "other, the next one's first layers on engines that work ahead"},
    {0, true, "dump", "STAGE", OPTION_TEXT, AT(dump),
     "print graph, a pass's name, passes, schedule, plan or all to stderr"},
    {0, true, "explain", NULL, OPTION_FLAG, AT(explain),
     "say of every volume where it is and why, in one line"},
    {0, false, "emit", "WHAT", OPTION_TEXT, AT(emit),
     "show: json, the network itself, as docs/graph-json.md says; compile: "
     "host or bundle, also an object file and its header, of the layers of the "
     "host or of the whole network; problem, the buffers of such a bundle as "
     "`pack` reads them; compile, verify: words, instructions of the machine "
     "that its hwspec makes of a listing"},
    {0, true, "io", "separate|shared", OPTION_WORD, AT(io),
     "inputs and outputs of a bundle: arrays of the caller, or among its "
     "other buffers (default: as the hwspec says)"},
    {0, true, "most-images", "N", OPTION_COUNT, AT(most_images),
     "a bundle for 1 to N images at once, as many as each run says"},
    {0, true, "images", "N", OPTION_COUNT, AT(images),
     "compile for N images one behind the other, in one listing (default 1)"},
    {0, true, "host", "native|interpret", OPTION_WORD, AT(host),
     "how layers of the host are computed (default: native, if built with "
     "LLVM)"},
    {0, false, "native", NULL, OPTION_FLAG, AT(native),
     "by machine code for this computer (-t: as for that processor), not by "
     "the reference"},
    {0, false, "place", NULL, OPTION_FLAG, AT(place),
     "of the text of a file: new addresses for all of its operands"},
    {0, true, "log-rules", NULL, OPTION_FLAG, AT(rules),
     "print each firing of a rewrite rule to stderr"},
    {0, false, "input", "FILE", OPTION_INPUT, 0,
     "values of the next network input: .npy, or .pb (default: seeded)"},
    {0, false, "expect", "FILE", OPTION_EXPECT, 0,
     "values that the next network output should have: .npy or .pb"},
    {0, true, "fix", "NAME=FILE", OPTION_FIX, 0,
     "an input that always has these values: a constant (ONNX)"},
    {0, true, "inputs", "NAME,...", OPTION_STARTS, 0,
     "tensors at which the network begins, not at its own inputs"},
    {0, true, "outputs", "NAME,...", OPTION_ENDS, 0,
     "tensors at which it ends, not at its own outputs"},
    {0, true, "tolerance", "X", OPTION_REAL, AT(tolerance),
     "largest relative error that agrees (default 1e-4)"},
    {0, true, "memory-only", NULL, OPTION_FLAG, AT(memory_only),
     "check addresses and count bytes; compute nothing"},
    {0, true, "lax", NULL, OPTION_FLAG, AT(lax),
     "judge what is executed alone, not tokens that follow from others: for "
     "listings that were written by hand"},
    {0, true, "unread", NULL, OPTION_FLAG, AT(unread),
     "list the tokens that the hwspec excuses: those without effect, those "
     "that "
     "others fill in later, and those of older texts that are taken as they "
     "are"},
    {0, true, "print-passes", NULL, OPTION_FLAG, AT(print_passes),
     "print the pipeline and its rules, and stop"},
    {0, false, "report", "FILE.html", OPTION_TEXT, AT(report),
     "write a page to work with: network, memory and engines over time, "
     "roofline, plans, layers, what-ifs"},
    {0, false, "what-if", NULL, OPTION_FLAG, AT(what_if),
     "with --report: compile anew for each change of the machine that the page "
     "shows, not only run the plan there"},
    {0, false, "trace", "FILE.json", OPTION_TEXT, AT(trace),
     "write trace events for chrome://tracing or Perfetto"},
    {0, false, "accesses", "FILE.csv", OPTION_TEXT, AT(accesses),
     "write what each instruction reads and writes, by cycle: docs/listing.md"},
    {0, false, "materialise", NULL, OPTION_FLAG, AT(materialise),
     "write weights, biases, scales and tables as bytes, seeded ones too, with "
     "a manifest: docs/listing.md"},
    {0, false, "raw", NULL, OPTION_FLAG, AT(raw),
     "the words alone, one behind the other, as a DMA takes them: no header, "
     "no names"},
    {0, false, "json", NULL, OPTION_FLAG, AT(json),
     "print one JSON object on stdout"},
    {0, false, "calibrate", "PATH", OPTION_TEXT, AT(quantise.calibrate),
     "samples: a folder or file of .npy, .npz, .pb, .raw, PNG, JPEG; "
     "FILE.npz:ARRAY and @FIRST-LAST choose some"},
    {0, false, "quantizer", "FILE", OPTION_TEXT, AT(quantise.quantizer),
     "a quantizer.json of xfDNN: its scales and factors, in place of samples"},
    {0, false, "test", "PATH", OPTION_TEXT, AT(quantise.test),
     "samples to judge with, which nothing is chosen by"},
    {0, false, "labels", "FILE", OPTION_TEXT, AT(quantise.labels),
     "right answers of --test (else of --calibrate): .npy, .npz, text"},
    {0, false, "method", "minmax|percentile|mse|kl", OPTION_WORD,
     AT(quantise.method), "how ranges are chosen (default mse)"},
    {0, false, "percentile", "X", OPTION_REAL, AT(quantise.percentile),
     "values that --method percentile keeps (default 99.99)"},
    {0, false, "scales", "any|pow2", OPTION_WORD, AT(quantise.scales),
     "free scales (default), or powers of two"},
    {0, false, "per", "channel|tensor", OPTION_WORD, AT(quantise.per),
     "scales of weights: one an output channel (default), or one a layer"},
    {0, false, "zeros", "any|none", OPTION_WORD, AT(quantise.zeros),
     "zero points (default), or codes around 0"},
    {0, false, "type", "int8|uint8", OPTION_WORD, AT(quantise.type),
     "codes of volumes (default int8)"},
    {0, false, "bits", "[LAYER=]W[/V]", OPTION_BITS, 0,
     "bits of a layer's weights (2, 4, 8, 16) and of its result (8, 16); real: "
     "the layer stays on real numbers"},
    {0, false, "repair", "LIST|all|none", OPTION_TEXT, AT(quantise.repair),
     "repairs to try: equalise,adaround,bias,ranges,keep (default all but "
     "keep)"},
    {0, false, "keep", "N", OPTION_COUNT, AT(quantise.keep),
     "layers that --repair keep may give 16 bits (default 3)"},
    {0, false, "rounding", "up|even", OPTION_WORD, AT(quantise.rounding),
     "halves up as TensorFlow Lite, or to even as onnxruntime (default even; "
     "-t: the machine's)"},
    {0, false, "mean", "X[,X...]", OPTION_TEXT, AT(quantise.mean),
     "is taken from the elements of samples, one for all or one a channel"},
    {0, false, "scale", "X[,X...]", OPTION_TEXT, AT(quantise.scale),
     "they are multiplied with it then"},
    {0, false, "layout", "chw|hwc", OPTION_WORD, AT(quantise.layout),
     "order of the inputs' axes (default: as their shape looks)"},
    {0, false, "color", "rgb|bgr", OPTION_WORD, AT(quantise.color),
     "order of the channels of pictures (default rgb)"},
    {0, false, "resize", "crop|fit|stretch", OPTION_WORD, AT(quantise.resize),
     "pictures of another size (default crop)"},
    {0, false, "raw", "f32|u8|i8", OPTION_WORD, AT(quantise.raw),
     "elements of .raw and .bin files (default f32 where the size allows)"},
    {'h', false, "help", NULL, OPTION_FLAG, AT(help), "this text"},
};
_Static_assert(sizeof option_table / sizeof *option_table <= MOST_OPTIONS,
               "too many options");
const int n_options = sizeof option_table / sizeof *option_table;

static bool is_first_of_name(const Option *option) {
    for (const Option *o = option_table; o < option; o++)
        if (!strcmp(o->name, option->name))
            return false;
    return true;
}

/* The list of a command has NAME, or NAME= for the second one of that name. */
bool option_accepted(const Command *command, const Option *option) {
    size_t len = strlen(option->name);
    if (option->at == AT(help))
        return true;
    for (const char *at = command->accepts; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " "), name = strcspn(at, "= ");
        if (name == len && !strncmp(at, option->name, len) &&
            (word == name) == is_first_of_name(option))
            return true;
        at += word;
    }
    return false;
}

/* What a file's or a folder's name is completed for. */
static bool takes_path(const Option *option) {
    const char *a = option->argument;
    return a && (strstr(a, "FILE") || strstr(a, "PATH") || strstr(a, "DIR"));
}

bool options_info(const Command *command, uint32_t index, OptionInfo *out) {
    for (int i = 0; i < n_options; i++) {
        const Option *option = &option_table[i];
        if (!option_accepted(command, option) || index-- > 0)
            continue;
        *out = (OptionInfo){.letter = option->letter,
                            .name = option->name,
                            .argument = option->argument,
                            .doc = option->doc,
                            .advanced = option->advanced,
                            .is_file = option->kind != OPTION_SETTING &&
                                       takes_path(option),
                            .is_target = option->kind == OPTION_TARGET};
        return true;
    }
    return false;
}

static void print_option(const OptionInfo *option, FILE *to) {
    char head[64];
    snprintf(head, sizeof head, "%c%c%s--%s%s%s", option->letter ? '-' : ' ',
             option->letter ? option->letter : ' ',
             option->letter ? ", " : "  ", option->name,
             option->argument ? " " : "",
             option->argument ? option->argument : "");
    fprintf(to, "  %-30s %s\n", head, option->doc);
}

/* "  amphora compile a b" for each line. */
static void print_examples(const Command *command, FILE *to) {
    fputs("\nexamples:\n", to);
    for (const char *at = command->examples; *at;) {
        int n = (int)strcspn(at, "\n");
        fprintf(to, "  amphora %s %.*s\n", command->name, n, at);
        at += n + (at[n] == '\n');
    }
}

void options_help(const Command *command, bool all, FILE *to) {
    OptionInfo option;
    uint32_t hidden = 0;
    fprintf(to, "usage: amphora %s%s%s [options]\n\n%s\n", command->name,
            command->argument ? " " : "",
            command->argument ? command->argument : "", command->doc);
    if (command->details)
        fprintf(to, "\n%s\n", command->details);
    if (command->examples)
        print_examples(command, to);
    fputs("\noptions:\n", to);
    for (uint32_t i = 0; options_info(command, i, &option); i++)
        if (all || !option.advanced)
            print_option(&option, to);
        else
            hidden++;
    if (hidden)
        fprintf(to, "\n%u more: amphora %s --help all\n", hidden,
                command->name);
}
