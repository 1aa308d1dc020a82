/* target.c - target machines over LLVM-C; see target.h. */
#include "native/llvm/target.h"

#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <string.h>

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

/* Processors with AVX-512 VNNI, by name or by what they can do. */
static bool has_dots(const char *cpu, const char *features) {
    static const char *const cpus[] = {
        "cascadelake", "cooperlake",     "icelake-client", "icelake-server",
        "rocketlake",  "sapphirerapids", "tigerlake",      "znver4"};
    if (strstr(features, "+avx512vnni"))
        return true;
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++)
        if (strcmp(cpu, cpus[i]) == 0)
            return !strstr(features, "-avx512vnni");
    return false;
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

static LLVMTargetMachineRef create(Diag *diag, const char *triple,
                                   const char *cpu, const char *features) {
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(triple, &target, &message)) {
        diag_error(diag, (Loc){0}, "native code for %s: %s", triple, message);
        LLVMDisposeMessage(message);
        return NULL;
    }
    return LLVMCreateTargetMachine(target, triple, cpu, features,
                                   LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                   LLVMCodeModelDefault);
}

bool machine_open(Diag *diag, const NativeTarget *target, Machine *out) {
    bool named = target->triple && *target->triple;
    initialise(named);
    Own own = own_open();
    bool any = target->triple != NULL;
    const char *triple = named ? target->triple : own.triple;
    const char *cpu = any ? or_empty(target->cpu) : own.cpu;
    const char *features = any ? or_empty(target->features) : own.features;
    *out = (Machine){.machine = create(diag, triple, cpu, features)};
    if (out->machine) {
        out->layout = LLVMCreateTargetDataLayout(out->machine);
        out->triple = LLVMGetTargetMachineTriple(out->machine);
        out->lanes = target->lanes ? target->lanes : lanes_of(triple, features);
        out->registers = registers_of(triple, out->lanes);
        out->dots =
            strncmp(triple, "x86_64", 6) == 0 && has_dots(cpu, features);
    }
    own_close(&own);
    return out->machine != NULL;
}

void machine_close(Machine *machine) {
    LLVMDisposeMessage(machine->triple);
    LLVMDisposeTargetData(machine->layout);
    LLVMDisposeTargetMachine(machine->machine);
}

void machine_optimise(const Machine *machine, LLVMModuleRef module) {
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetLoopVectorization(options, machine->lanes > 1);
    LLVMErrorRef error =
        LLVMRunPasses(module, "default<O2>", machine->machine, options);
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
