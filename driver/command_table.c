/* command_table.c - every command: its arguments, options and help.
 *
 * Input: nothing. Output: the table that the parser, --help, manual pages and
 * completions are made of.
 */
#include "driver/commands.h"
#include "driver/option_table.h"

#include <string.h>

#define MACHINE SHARED(targets), SHARED(settings)
#define NETWORK                                                                \
    SHARED(weights), SHARED(phase), SHARED(batch), SHARED(shapes),             \
        SHARED(fixed), SHARED(states), SHARED(seed), SHARED(rules),            \
        SHARED(starts), SHARED(ends)
#define PLANNING                                                               \
    SHARED(order), SHARED(side), SHARED(budget), SHARED(planner),              \
        SHARED(replication), SHARED(mode), SHARED(objective),                  \
        SHARED(recompute), SHARED(effort)

static const OptionAt compile_options[] = {MACHINE,
                                           NETWORK,
                                           PLANNING,
                                           SHARED(images),
                                           SHARED(inputs),
                                           SHARED(out),
                                           SHARED(dump),
                                           OWN(CompileArgs, print_passes),
                                           OWN(CompileArgs, report),
                                           OWN(CompileArgs, what_if),
                                           OWN(CompileArgs, trace),
                                           SHARED(json),
                                           OWN(CompileArgs, explain),
                                           SHARED(emit),
                                           OWN(CompileArgs, io),
                                           OWN(CompileArgs, most_images),
                                           SHARED(front),
                                           SHARED(progress),
                                           OWN(CompileArgs, materialise)};
static const OptionAt simulate_options[] = {MACHINE,
                                            SHARED(seed),
                                            SHARED(weights),
                                            SHARED(inputs),
                                            SHARED(calls),
                                            SHARED(out),
                                            OWN(SimulateArgs, memory_only),
                                            OWN(SimulateArgs, report),
                                            OWN(SimulateArgs, trace),
                                            SHARED(json),
                                            OWN(SimulateArgs, host),
                                            OWN(SimulateArgs, lax),
                                            OWN(SimulateArgs, accesses)};
static const OptionAt verify_options[] = {MACHINE,
                                          NETWORK,
                                          PLANNING,
                                          SHARED(images),
                                          SHARED(inputs),
                                          SHARED(calls),
                                          OWN(VerifyArgs, expects),
                                          OWN(VerifyArgs, tolerance),
                                          SHARED(dump),
                                          SHARED(json),
                                          OWN(VerifyArgs, host),
                                          SHARED(emit),
                                          SHARED(progress)};
static const OptionAt eval_options[] = {
    SHARED(weights),          SHARED(phase),  SHARED(batch),
    SHARED(shapes),           SHARED(fixed),  SHARED(states),
    SHARED(starts),           SHARED(ends),   SHARED(seed),
    SHARED(inputs),           SHARED(calls),  OWN(EvalArgs, expects),
    OWN(EvalArgs, tolerance), SHARED(out),    SHARED(json),
    OWN(EvalArgs, native),    SHARED(targets)};
static const OptionAt show_options[] = {MACHINE,
                                        NETWORK,
                                        PLANNING,
                                        SHARED(images),
                                        OWN(ShowArgs, orders),
                                        OWN(ShowArgs, svg),
                                        SHARED(out),
                                        SHARED(dump),
                                        SHARED(json),
                                        SHARED(emit),
                                        SHARED(progress)};
static const OptionAt quantise_options[] = {MACHINE,
                                            SHARED(weights),
                                            SHARED(phase),
                                            SHARED(batch),
                                            SHARED(shapes),
                                            SHARED(fixed),
                                            SHARED(seed),
                                            SHARED(out),
                                            SHARED(json),
                                            SHARED(progress),
                                            OWN(QuantiseArgs, jobs),
                                            OWN(QuantiseArgs, report),
                                            OWN(QuantiseArgs, calibrate),
                                            OWN(QuantiseArgs, quantizer),
                                            OWN(QuantiseArgs, test),
                                            OWN(QuantiseArgs, labels),
                                            OWN(QuantiseArgs, method),
                                            OWN(QuantiseArgs, percentile),
                                            OWN(QuantiseArgs, scales),
                                            OWN(QuantiseArgs, per),
                                            OWN(QuantiseArgs, zeros),
                                            OWN(QuantiseArgs, type),
                                            OWN(QuantiseArgs, bits),
                                            OWN(QuantiseArgs, repair),
                                            OWN(QuantiseArgs, keep),
                                            OWN(QuantiseArgs, rounding),
                                            OWN(QuantiseArgs, mean),
                                            OWN(QuantiseArgs, scale),
                                            OWN(QuantiseArgs, layout),
                                            OWN(QuantiseArgs, color),
                                            OWN(QuantiseArgs, resize),
                                            OWN(QuantiseArgs, raw_type)};
static const OptionAt explore_options[] = {MACHINE,
                                           NETWORK,
                                           PLANNING,
                                           SHARED(images),
                                           OWN(ExploreArgs, varies),
                                           OWN(ExploreArgs, goal),
                                           OWN(ExploreArgs, minimise),
                                           OWN(ExploreArgs, maximise),
                                           OWN(ExploreArgs, risings),
                                           OWN(ExploreArgs, most_points),
                                           OWN(ExploreArgs, submit),
                                           OWN(ExploreArgs, shards),
                                           OWN(ExploreArgs, hosts),
                                           OWN(ExploreArgs, resume),
                                           OWN(ExploreArgs, shard),
                                           OWN(ExploreArgs, merge),
                                           OWN(ExploreArgs, jobs),
                                           OWN(ExploreArgs, reports),
                                           SHARED(out),
                                           SHARED(json)};
static const OptionAt diff_options[] = {MACHINE, NETWORK, PLANNING,
                                        SHARED(json)};
static const OptionAt pack_options[] = {OWN(PackArgs, capacity),
                                        OWN(PackArgs, pools),
                                        SHARED(planner),
                                        SHARED(out),
                                        OWN(PackArgs, svg),
                                        OWN(PackArgs, seconds),
                                        SHARED(budget),
                                        SHARED(seed),
                                        SHARED(json)};
static const OptionAt check_options[] = {SHARED(settings),
                                         OWN(CheckArgs, unread),
                                         OWN(CheckArgs, explain), SHARED(json)};
static const OptionAt asm_options[] = {
    MACHINE, OWN(AsmArgs, place), SHARED(out), SHARED(json), OWN(AsmArgs, raw)};
static const OptionAt disasm_options[] = {MACHINE, SHARED(out), SHARED(json)};
static const OptionAt import_options[] = {SHARED(out), SHARED(json)};

#define HAS(options) sizeof options / sizeof *options, options

const Command commands[] = {
    {"compile", "NET", HAS(compile_options), sizeof(CompileArgs), cmd_compile,
     "Compiles a network for a machine.\n"
     "Writes NET.cmd (the listing), NET.json (the same with the data image)\n"
     "and, for weights that are not recipes, NET.weights; to the present\n"
     "folder, if -o names none.",
     NULL,
     "examples/googlenet.prototxt -t ./mine.yaml -o out\n"
     "net.onnx -t ./mine.yaml --report page.html\n"
     "net.tflite -t ./mine.yaml --materialise -o out\n"},
    {"simulate", "LISTING", HAS(simulate_options), sizeof(SimulateArgs),
     cmd_simulate,
     "Runs a listing and judges it.\n"
     "Takes .cmd text or .json: memory safety, bytes moved, cycles; with -o\n"
     "DIR the network's outputs are written as .npy.",
     "NAME.json beside NAME.cmd gives the weights and the layers of the host;\n"
     "without it weights are seeded and host layers are skipped.",
     "out/googlenet.cmd -t ./mine.yaml\n"
     "out/net.json -t ./mine.yaml --accesses accesses.csv\n"},
    {"verify", "NET", HAS(verify_options), sizeof(VerifyArgs), cmd_verify,
     "Compiles, simulates the listing, compares the values.\n"
     "Every kept layer is compared with the reference evaluation of the\n"
     "network as it was read; with --expect also the outputs of both with\n"
     "values that others computed.",
     NULL,
     "examples/tiny.prototxt -t ./mine.yaml\n"
     "net.onnx -t ./mine.yaml --set memories.am.size=2MiB\n"},
    {"eval", "NET", HAS(eval_options), sizeof(EvalArgs), cmd_eval,
     "Computes what a network computes.\n"
     "By the reference evaluation, or --native; compares it with --expect; "
     "with\n"
     "-o DIR the outputs are written as .npy.",
     NULL, "net.onnx --input image.npy -o out\n"},
    {"show", "NET", HAS(show_options), sizeof(ShowArgs), cmd_show,
     "Says what a network is, and what its plan holds when.\n"
     "With -t: step by step, which volumes are alive in active memory and how\n"
     "many bytes they take.",
     NULL,
     "examples/tiny.prototxt -t ./mine.yaml\n"
     "examples/googlenet.prototxt -t ./mine.yaml --svg alive.svg\n"},
    {"quantise", "NET", HAS(quantise_options), sizeof(QuantiseArgs),
     cmd_quantise,
     "Turns a network of real numbers into one of 8-bit codes.\n"
     "From samples of its inputs. To the folder -o: NET.json (every command\n"
     "reads it), NET.onnx (QDQ), NET.tflite, quantizer.json (xfDNN, without\n"
     "zero points); what was measured as NET.html and NET.report.json.",
     "docs/quantise.md has what samples are, the methods and the repairs.",
     "net.onnx --calibrate pictures -o out\n"
     "net.onnx --calibrate samples.npz:images@0-99 --scales pow2 --per tensor "
     "-o out\n"},
    {"explore", "NET...", HAS(explore_options), sizeof(ExploreArgs),
     cmd_explore,
     "Tries networks on machines with all combinations of values.\n"
     "Compiles and simulates each point, and says which are the best.",
     "With -o DIR writes points.csv, points.jsonl and index.html. A run that\n"
     "was killed goes on with --resume DIR/points.jsonl; runs of several\n"
     "machines, each with its --shard, are put together by --merge FILES.",
     "net.onnx -t ./mine.yaml --vary memories.am.size=1MiB,2MiB,4MiB -o out\n"
     "net.onnx -t ./mine.yaml --vary memories.am.size=1M:8M:256K "
     "--goal 'ms(net) <= 2' --minimise am_capacity_bytes\n"},
    {"diff", "A B NET...", HAS(diff_options), 0, cmd_diff,
     "Compares two machines, or two listings.\n"
     "The keys of A and B, hwspecs or shipped machines, that differ; of each\n"
     "network what it costs on both, and the layers where they part most.\n"
     "With --target, A and B are listings of that machine.",
     "--set holds for both. Times of layers overlap where engines do.",
     "./mine.yaml ./other.yaml examples/googlenet.prototxt\n"
     "before/net.cmd after/net.cmd -t ./mine.yaml\n"},
    {"pack", "PROBLEM", HAS(pack_options), sizeof(PackArgs), cmd_pack,
     "Places buffers with lives and sizes in one memory.\n"
     "As low as possible, or anyhow within --capacity; says the lower bound,\n"
     "and what is proved.",
     "PROBLEM is a CSV as MiniMalloc has it: id,lower,upper,size and where\n"
     "wanted alignment, hint, gaps, offset (pinned there); and relations, "
     "pool,\n"
     "size:NAME, as docs/pack.md says. -o writes the same with offsets. The\n"
     "planner `all` compares all of them; the default is portfolio. What "
     "cannot\n"
     "fit is explained by an irreducible set of buffers.",
     "examples/placement/example.csv --svg placed.svg\n"},
    {"check", "HWSPEC", HAS(check_options), sizeof(CheckArgs), cmd_check,
     "Checks a hwspec and says what machine it describes.\n"
     "A file, or a shipped target by name.",
     "--explain: of a machine with a container, how each field is read back\n"
     "and what its meanings can be.",
     "mine.yaml\n"
     "mine.yaml --unread\n"},
    {"asm", "LISTING", HAS(asm_options), sizeof(AsmArgs), cmd_asm,
     "Encodes a listing by the `bits` of the hwspec's rows.\n"
     "To LISTING.bin in the present folder, if -o names no file.",
     "Of a machine with a container: the text of a file becomes the file.",
     "out/net.cmd -t ./mine.yaml -o net.bin\n"
     "out/net.cmd -t ./mine.yaml --raw -o net.words\n"},
    {"disasm", "FILE", HAS(disasm_options), 0, cmd_disasm,
     "Prints an encoded listing as text.\n"
     "On stdout, if -o names no file.",
     "Of a machine with a container: its files.", "net.bin -t ./mine.yaml\n"},
    {"import", "FILE", HAS(import_options), 0, cmd_import,
     "Makes a hwspec from a description of a DPU by Vitis AI.\n"
     "To NAME.yaml in the present folder, if -o names no file.",
     "FILE is the target's text, DPUCZDX8G_....prototxt; the hwspec extends\n"
     "dpuczdx8g, and says in a comment what it leaves out.",
     "DPUCZDX8G_ISA1_B4096.prototxt -o b4096.yaml\n"},
};
const uint32_t n_commands = sizeof commands / sizeof commands[0];

const Command *command_find(const char *name) {
    for (uint32_t i = 0; i < n_commands; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}
