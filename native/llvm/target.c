/* target.c - target machines over LLVM-C; see target.h. */
#include "native/llvm/target.h"

#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What LLVM says of the processor that this runs on. */
typedef struct Own {
    char *triple, *cpu, *features;
} Own;

static Own own_open(void) {
    return (Own){LLVMGetDefaultTargetTriple(), LLVMGetHostCPUName(),
                 LLVMGetHostCPUFeatures()};
}

static void own_close(const Own *own) {
    LLVMDisposeMessage(own->triple);
    LLVMDisposeMessage(own->cpu);
    LLVMDisposeMessage(own->features);
}

static uint32_t lanes_of(const char *triple, const char *features) {
    static const struct {
        const char *word;
        uint32_t lanes;
    } by_feature[] = {{"+avx512f", 16}, {"+avx", 8}, {"+neon", 4}},
      by_triple[] = {{"x86_64", 4}, {"aarch64", 4}};
    for (size_t i = 0; i < sizeof by_feature / sizeof *by_feature; i++)
        if (strstr(features, by_feature[i].word))
            return by_feature[i].lanes;
    for (size_t i = 0; i < sizeof by_triple / sizeof *by_triple; i++)
        if (strncmp(triple, by_triple[i].word, strlen(by_triple[i].word)) == 0)
            return by_triple[i].lanes;
    return 1;
}

/* What x86 has for codes, by processor or feature: sums of 32 bits that an
 * instruction makes of pairs of products of 16, and whether one makes them of
 * four products of bytes. */
typedef struct Sums {
    const char *name;
    uint32_t pairs;
    bool dots;
} Sums;

static Sums sums_of(const char *cpu, const char *features) {
    static const Sums
        by_feature[] = {{"+avx512vnni", 16, true},
                        {"+avx512bw", 16, false},
                        {"+avx2", 8, false}},
        by_cpu[] = {{"cascadelake", 16, true},     {"cooperlake", 16, true},
                    {"icelake-client", 16, true},  {"icelake-server", 16, true},
                    {"rocketlake", 16, true},      {"sapphirerapids", 16, true},
                    {"tigerlake", 16, true},       {"znver4", 16, true},
                    {"skylake-avx512", 16, false}, {"x86-64-v4", 16, false},
                    {"x86-64-v3", 8, false},       {"haswell", 8, false},
                    {"broadwell", 8, false},       {"skylake", 8, false},
                    {"znver1", 8, false},          {"znver2", 8, false},
                    {"znver3", 8, false}};
    for (size_t i = 0; i < sizeof by_feature / sizeof *by_feature; i++)
        if (strstr(features, by_feature[i].name))
            return by_feature[i];
    for (size_t i = 0; i < sizeof by_cpu / sizeof *by_cpu; i++)
        if (strcmp(cpu, by_cpu[i].name) == 0)
            return by_cpu[i];
    return (Sums){"", 4, false};
}

static void set_sums(Machine *machine, const char *cpu, const char *features) {
    if (strncmp(machine->triple, "x86_64", 6) != 0)
        return;
    Sums sums = sums_of(cpu, features);
    machine->dots = sums.dots;
    machine->pairs = sums.pairs < machine->lanes ? sums.pairs : machine->lanes;
}

/* Of the widest vectors. */
static uint32_t registers_of(const char *triple, uint32_t lanes) {
    static const char *const many[] = {"aarch64", "riscv", "powerpc"};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        if (strncmp(triple, many[i], strlen(many[i])) == 0)
            return 32;
    return lanes >= 16 ? 32 : 16;
}

static void initialise(bool all) {
    if (!all) {
        LLVMInitializeNativeTarget();
        LLVMInitializeNativeAsmPrinter();
        return;
    }
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
}

static const char *or_empty(const char *text) {
    return text ? text : "";
}

typedef struct Wanted {
    LLVMTargetRef target;
    const char *triple, *cpu, *features;
} Wanted;

static LLVMTargetMachineRef machine_of(const Wanted *w) {
    return LLVMCreateTargetMachine(w->target, w->triple, w->cpu, w->features,
                                   LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                   LLVMCodeModelDefault);
}

/* The same, with what it writes to stderr in a file: of processors and
 * features that it does not know, LLVM-C says nothing else, and goes on with
 * others, or aborts. */
static LLVMTargetMachineRef machine_into(const Wanted *w, FILE *said) {
    fflush(stderr);
    int own = dup(STDERR_FILENO);
    if (own < 0)
        return machine_of(w);
    dup2(fileno(said), STDERR_FILENO);
    LLVMTargetMachineRef machine = machine_of(w);
    dup2(own, STDERR_FILENO);
    close(own);
    rewind(said);
    return machine;
}

/* An error for the first name that LLVM does not know. */
static bool all_known(Diag *diag, const char *triple, FILE *said) {
    char line[256];
    while (fgets(line, sizeof line, said)) {
        if (!strstr(line, " is not a recognized "))
            continue;
        char *behind = strstr(line, " (ignoring");
        if (behind)
            *behind = '\0';
        diag_error(diag, (Loc){0}, "native code for %s: %s", triple, line);
        return false;
    }
    return true;
}

static LLVMTargetMachineRef create(Diag *diag, Wanted *w) {
    char *message = NULL;
    if (LLVMGetTargetFromTriple(w->triple, &w->target, &message)) {
        diag_error(diag, (Loc){0}, "native code for %s: %s", w->triple,
                   message);
        LLVMDisposeMessage(message);
        return NULL;
    }
    FILE *said = tmpfile();
    if (!said)
        return machine_of(w);
    LLVMTargetMachineRef machine = machine_into(w, said);
    if (machine && !all_known(diag, w->triple, said)) {
        LLVMDisposeTargetMachine(machine);
        machine = NULL;
    }
    fclose(said);
    return machine;
}

bool machine_open(Diag *diag, const NativeTarget *target, Machine *out) {
    bool named = target->triple && *target->triple;
    initialise(named);
    Own own = own_open();
    bool any = target->triple != NULL;
    const char *triple = named ? target->triple : own.triple;
    const char *cpu = any ? or_empty(target->cpu) : own.cpu;
    const char *features = any ? or_empty(target->features) : own.features;
    Wanted wanted = {.triple = triple, .cpu = cpu, .features = features};
    *out = (Machine){.machine = create(diag, &wanted)};
    if (out->machine) {
        out->layout = LLVMCreateTargetDataLayout(out->machine);
        out->triple = LLVMGetTargetMachineTriple(out->machine);
        out->lanes = target->lanes ? target->lanes : lanes_of(triple, features);
        out->registers = registers_of(triple, out->lanes);
        set_sums(out, cpu, features);
    }
    own_close(&own);
    return out->machine != NULL;
}

void machine_close(Machine *machine) {
    LLVMDisposeMessage(machine->triple);
    LLVMDisposeTargetData(machine->layout);
    LLVMDisposeTargetMachine(machine->machine);
}

/* What makes code of kernels fast, of what "default<O2>" does: they call
 * nothing that could be inlined, and their inner loops are vectors already.
 * Loops of other layers are vectorised where the processor has lanes. */
#if LLVM_VERSION_MAJOR >= 18
#define COMBINE "instcombine<no-verify-fixpoint>,"
#else
#define COMBINE "instcombine,"
#endif
#define SIMPLE                                                                 \
    "sroa,early-cse<memssa>,simplifycfg," COMBINE                              \
    "loop-mssa(loop-rotate,licm),loop(indvars),gvn,"
#define LAST COMBINE "simplifycfg,loop-unroll,loop-mssa(licm)"

void machine_optimise(const Machine *machine, LLVMModuleRef module) {
    const char *passes = machine->lanes > 1
                             ? "function(" SIMPLE
                               "loop-vectorize,slp-vectorizer," LAST ")"
                             : "function(" SIMPLE LAST ")";
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error =
        LLVMRunPasses(module, passes, machine->machine, options);
    if (error)
        bug("LLVM's passes: %s", LLVMGetErrorMessage(error));
    LLVMDisposePassBuilderOptions(options);
}

LLVMMemoryBufferRef machine_object(Diag *diag, const Machine *machine,
                                   LLVMModuleRef module) {
    LLVMMemoryBufferRef buffer = NULL;
    char *message = NULL;
    if (!LLVMTargetMachineEmitToMemoryBuffer(machine->machine, module,
                                             LLVMObjectFile, &message, &buffer))
        return buffer;
    diag_error(diag, (Loc){0}, "native code for %s: %s", machine->triple,
               message);
    LLVMDisposeMessage(message);
    return NULL;
}

void object_name_abi(const NativeTarget *target, uint8_t *object, size_t len) {
    enum { MACHINE_AT = 18, RISCV = 243, FLAGS_AT = 48, DOUBLES = 4, END = 52 };
    const char *features = or_empty(target->features);
    if (len >= END && memcmp(object, "\177ELF\2\1", 6) == 0 &&
        object[MACHINE_AT] == RISCV && strstr(features, "+d"))
        object[FLAGS_AT] |= DOUBLES;
}
