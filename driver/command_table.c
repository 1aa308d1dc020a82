/* command_table.c - every command: its arguments, options and help.
 *
 * Input: nothing. Output: the table that the parser, --help, manual pages and
 * completions are made of.
 */
#include "driver/commands.h"

#include <string.h>

#define MACHINE "target set "
#define NETWORK "weights phase batch shape fix seed log-rules inputs outputs "
#define PLANNING                                                               \
    "order side-by-side budget planner replication mode objective effort "

const Command commands[] = {
    {"compile", "NET",
     MACHINE NETWORK PLANNING
     "images input output dump print-passes report what-if trace json explain "
     "emit "
     "io most-images front progress materialise",
     cmd_compile,
     "Compiles a network for a machine.\n"
     "Writes NET.cmd (the listing), NET.json (the same with the data image)\n"
     "and, for weights that are not recipes, NET.weights; to the present\n"
     "folder, if -o names none.",
     NULL,
     "examples/googlenet.prototxt -t ./mine.yaml -o out\n"
     "net.onnx -t ./mine.yaml --report page.html\n"
     "net.tflite -t ./mine.yaml --materialise -o out\n"},
    {"simulate", "LISTING",
     MACHINE "seed weights input output memory-only report trace json host lax "
             "accesses",
     cmd_simulate,
     "Runs a listing and judges it.\n"
     "Takes .cmd text or .json: memory safety, bytes moved, cycles; with -o\n"
     "DIR the network's outputs are written as .npy.",
     "NAME.json beside NAME.cmd gives the weights and the layers of the host;\n"
     "without it weights are seeded and host layers are skipped.",
     "out/googlenet.cmd -t ./mine.yaml\n"
     "out/net.json -t ./mine.yaml --accesses accesses.csv\n"},
    {"verify", "NET",
     MACHINE NETWORK PLANNING
     "images input expect tolerance dump json host emit progress",
     cmd_verify,
     "Compiles, simulates the listing, compares the values.\n"
     "Every kept layer is compared with the reference evaluation of the\n"
     "network as it was read; with --expect also the outputs of both with\n"
     "values that others computed.",
     NULL,
     "examples/tiny.prototxt -t ./mine.yaml\n"
     "net.onnx -t ./mine.yaml --set memories.am.size=2MiB\n"},
    {"eval", "NET",
     "weights phase batch shape fix inputs outputs seed input expect tolerance "
     "output json native target",
     cmd_eval,
     "Computes what a network computes.\n"
     "By the reference evaluation, or --native; compares it with --expect; "
     "with\n"
     "-o DIR the outputs are written as .npy.",
     NULL, "net.onnx --input image.npy -o out\n"},
    {"show", "NET",
     MACHINE NETWORK PLANNING
     "images orders svg output dump json emit progress",
     cmd_show,
     "Says what a network is, and what its plan holds when.\n"
     "With -t: step by step, which volumes are alive in active memory and how\n"
     "many bytes they take.",
     NULL,
     "examples/tiny.prototxt -t ./mine.yaml\n"
     "examples/googlenet.prototxt -t ./mine.yaml --svg alive.svg\n"},
    {"quantise", "NET",
     MACHINE
     "weights phase batch shape fix seed output json progress jobs report "
     "calibrate quantizer test labels method percentile scales per zeros type "
     "bits "
     "repair keep rounding mean scale layout color resize raw=",
     cmd_quantise,
     "Turns a network of real numbers into one of 8-bit codes.\n"
     "From samples of its inputs. To the folder -o: NET.json (every command\n"
     "reads it), NET.onnx (QDQ), NET.tflite, quantizer.json (xfDNN, without\n"
     "zero points); what was measured as NET.html and NET.report.json.",
     "docs/quantise.md has what samples are, the methods and the repairs.",
     "net.onnx --calibrate pictures -o out\n"
     "net.onnx --calibrate samples.npz:images@0-99 --scales pow2 --per tensor "
     "-o out\n"},
    {"explore", "NET...",
     MACHINE NETWORK PLANNING
     "images vary goal minimise maximise rising most-points submit "
     "shards hosts resume shard "
     "merge jobs reports output json",
     cmd_explore,
     "Tries networks on machines with all combinations of values.\n"
     "Compiles and simulates each point, and says which are the best.",
     "With -o DIR writes points.csv, points.jsonl and index.html. A run that\n"
     "was killed goes on with --resume DIR/points.jsonl; runs of several\n"
     "machines, each with its --shard, are put together by --merge FILES.",
     "net.onnx -t ./mine.yaml --vary memories.am.size=1MiB,2MiB,4MiB -o out\n"
     "net.onnx -t ./mine.yaml --vary memories.am.size=1M:8M:256K "
     "--goal 'ms(net) <= 2' --minimise am_capacity_bytes\n"},
    {"diff", "A B NET...", "set " NETWORK PLANNING "json", cmd_diff,
     "Compares two machines.\n"
     "The keys of A and B, hwspecs or shipped machines, that differ; of each\n"
     "network what it costs on both, and the layers where they part most.",
     "--set holds for both. Times of layers overlap where engines do.",
     "./mine.yaml ./other.yaml examples/googlenet.prototxt\n"},
    {"pack", "PROBLEM",
     "capacity pool planner output svg seconds budget seed json", cmd_pack,
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
    {"check", "HWSPEC", "set unread explain json", cmd_check,
     "Checks a hwspec and says what machine it describes.\n"
     "A file, or a shipped target by name.",
     "--explain: of a machine with a container, how each field is read back\n"
     "and what its meanings can be.",
     "mine.yaml\n"
     "mine.yaml --unread\n"},
    {"asm", "LISTING", MACHINE "place output json raw", cmd_asm,
     "Encodes a listing by the `bits` of the hwspec's rows.\n"
     "To LISTING.bin in the present folder, if -o names no file.",
     "Of a machine with a container: the text of a file becomes the file.",
     "out/net.cmd -t ./mine.yaml -o net.bin\n"
     "out/net.cmd -t ./mine.yaml --raw -o net.words\n"},
    {"disasm", "FILE", MACHINE "output json", cmd_disasm,
     "Prints an encoded listing as text.\n"
     "On stdout, if -o names no file.",
     "Of a machine with a container: its files.", "net.bin -t ./mine.yaml\n"},
    {"import", "FILE", "output json", cmd_import,
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
