/* emit.c - kernels become functions of a module, and the program's functions
 * call them; see emit.h.
 *
 * A kernel's function has one argument for each pointer, none of which
 * overlap but where the kernel says so; it is never inlined, so that calls of
 * the same kernel share it. No function calls a library: "no-builtins" keeps
 * LLVM from putting memcpy into the place of a loop. */
#include "native/llvm/emit.h"

#include "native/llvm/codes.h"

#include <llvm-c/Analysis.h>
#include <string.h>

/* ---- what can be made ---- */

static bool shapes_are_sane(uint32_t n, const Operand *operand) {
    for (uint32_t i = 0; i < n; i++)
        if (shape_count(&operand[i].shape) > SHAPE_MAX_COUNT ||
            shape_count(&operand[i].shape) == 0)
            return false;
    return true;
}

/* Sums of 64 bits become floats by functions that some processors need a
 * library for. */
static bool rounds(const Kernel *kernel) {
    return !codes_even(kernel) || !kernel_is_wide(kernel) ||
           kernel->quant->rule == QUANT_TABLE;
}

const char *emit_refuse(const Kernel *kernel) {
    const OpRow *row = op_of(kernel);
    Epilogue act;
    if (!row)
        return "there is no native code for its kind";
    if (kernel->n_in < row->n_in || kernel->n_out == 0)
        return "it has too few operands";
    if (!epilogue_read(kernel, &act))
        return "there is no native code for its activation";
    if (!rounds(kernel))
        return "there is no native code that rounds codes of 16 bits to even";
    uint64_t channels = operand_channels(&kernel->out[0]).n;
    if (!shapes_are_sane(kernel->n_in, kernel->in) ||
        !shapes_are_sane(kernel->n_out, kernel->out) ||
        (act.by_channel && !fits_constant(kernel, "slope", channels)) ||
        (kernel->quant && !codes_have_tables(kernel)) || !row->check(kernel))
        return "its operands, constants and attributes do not fit together";
    return NULL;
}

/* ---- functions ---- */

static void add_attribute(Code *c, Val function, unsigned at,
                          const char *name) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, at,
                            LLVMCreateEnumAttribute(c->context, kind, 0));
}

static Val new_function(Code *c, const char *name, uint32_t n_args,
                        Type type_of_args, Type result) {
    Type *args = ARENA_ARRAY(c->arena, Type, n_args);
    for (uint32_t i = 0; i < n_args; i++)
        args[i] = type_of_args;
    Type type = LLVMFunctionType(result, args, n_args, false);
    Val function = LLVMAddFunction(c->module, name, type);
    unsigned whole = (unsigned)LLVMAttributeFunctionIndex;
    static const char key[] = "no-builtins";
    LLVMAddAttributeAtIndex(
        function, whole,
        LLVMCreateStringAttribute(c->context, key, sizeof key - 1, "", 0));
    add_attribute(c, function, whole, "nounwind");
    return function;
}

/* Code goes into a block behind that of the variables. */
static void open_function(Code *c, Val function) {
    c->function = function;
    c->entry = LLVMAppendBasicBlockInContext(c->context, function, "entry");
    LLVMBasicBlockRef start =
        LLVMAppendBasicBlockInContext(c->context, function, "start");
    LLVMPositionBuilderAtEnd(c->builder, start);
}

/* value: what it returns, or NULL. */
static void close_function(Code *c, Val value) {
    if (value)
        LLVMBuildRet(c->builder, value);
    else
        LLVMBuildRetVoid(c->builder);
    LLVMPositionBuilderAtEnd(c->builder, c->entry);
    LLVMBuildBr(c->builder, LLVMGetNextBasicBlock(c->entry));
}

static Val emit_kernel(Code *c, const Kernel *k, uint32_t number) {
    uint32_t n = k->n_in + k->n_out + k->n_constants;
    Val *arg = ARENA_ARRAY(c->arena, Val, n);
    Val function =
        new_function(c, arena_printf(c->arena, "kernel_%u_%s", number, k->kind),
                     n, c->pointer, LLVMVoidTypeInContext(c->context));
    LLVMSetLinkage(function, LLVMInternalLinkage);
    add_attribute(c, function, (unsigned)LLVMAttributeFunctionIndex,
                  "noinline");
    for (uint32_t i = 0; i < n; i++) {
        bool written = i >= k->n_in && i < k->n_in + k->n_out;
        if (!k->overlaps || i >= k->n_in + k->n_out)
            add_attribute(c, function, i + 1, "noalias");
        if (!written)
            add_attribute(c, function, i + 1, "readonly");
        arg[i] = LLVMGetParam(function, i);
    }
    if (k->over >= 0)
        arg[k->over] = arg[k->n_in];
    open_function(c, function);
    Emit e = {.c = c,
              .k = k,
              .in = arg,
              .out = arg + k->n_in,
              .constant = arg + k->n_in + k->n_out,
              .lanes = 1};
    epilogue_read(k, &e.act);
    op_of(k)->emit(&e);
    close_function(c, NULL);
    return function;
}

/* ---- the program's functions ---- */

typedef struct Program {
    Code *c;
    const NativeProgram *program;
    EntryStyle style;
    const Val *kernel;
    Val weights; /* ENTRY_ARGS: the global constant; NULL if there are none */
} Program;

/* What a function of the program starts from. */
typedef struct Bases {
    Val *in, *out, *pool, *room, weights;
    Val load;   /* of constants: a function */
    Val images; /* how many; NULL: one */
} Bases;

static Val pointer_in(Code *c, Val array, uint32_t index) {
    Val at = code_index(c, index);
    Val place = LLVMBuildGEP2(c->builder, c->pointer, array, &at, 1, "");
    return LLVMBuildLoad2(c->builder, c->pointer, place, "");
}

static void argument_bases(const Program *p, Val function,
                           const NativeFunction *f, Bases *out) {
    for (uint32_t i = 0; i < f->n_in; i++)
        out->in[i] = LLVMGetParam(function, i);
    for (uint32_t i = 0; i < f->n_out; i++)
        out->out[i] = LLVMGetParam(function, f->n_in + i);
    if (p->weights)
        out->weights = LLVMConstBitCast(p->weights, p->c->pointer);
}

static Val base_of(const Bases *bases, const NativePointer *pointer) {
    switch (pointer->base) {
    case NATIVE_IN:
        return bases->in[pointer->index];
    case NATIVE_OUT:
        return bases->out[pointer->index];
    case NATIVE_ROOM:
        return bases->room[pointer->index];
    case NATIVE_WEIGHTS:
        return bases->weights;
    }
    return NULL;
}

/* piece, image: which they are. */
static Val pointer_of(const Program *p, const Bases *bases,
                      const NativePointer *pointer, Val piece, Val image) {
    Code *c = p->c;
    Val at = code_index(c, (int64_t)pointer->offset);
    if (pointer->piece)
        at = index_step(c, piece, pointer->piece, at);
    if (pointer->image)
        at = index_step(c, image, pointer->image, at);
    return code_bytes_at(c, base_of(bases, pointer), at);
}

static void emit_kernel_call(const Program *p, const Bases *bases,
                             const NativeCall *call, Val piece, Val image) {
    Code *c = p->c;
    Val *arg = ARENA_ARRAY(c->arena, Val, call->n);
    Type *type = ARENA_ARRAY(c->arena, Type, call->n);
    for (uint32_t i = 0; i < call->n; i++) {
        arg[i] = pointer_of(p, bases, &call->pointer[i], piece, image);
        type[i] = c->pointer;
    }
    Type function = LLVMFunctionType(LLVMVoidTypeInContext(c->context), type,
                                     call->n, false);
    LLVMBuildCall2(c->builder, function, p->kernel[call->kernel], arg, call->n,
                   "");
}

/* Returns what the caller's function does, if that is not 0. */
static void return_unless(Code *c, Val fine, Val value) {
    LLVMBasicBlockRef end =
        LLVMAppendBasicBlockInContext(c->context, c->function, "end");
    LLVMBasicBlockRef next =
        LLVMAppendBasicBlockInContext(c->context, c->function, "next");
    LLVMBuildCondBr(c->builder, fine, next, end);
    LLVMPositionBuilderAtEnd(c->builder, end);
    LLVMBuildRet(c->builder, value);
    LLVMPositionBuilderAtEnd(c->builder, next);
}

static Type load_type(const Code *c) {
    Type args[] = {c->index, c->index, c->pointer};
    return LLVMFunctionType(c->i32, args, 3, false);
}

static void emit_load(const Program *p, const Bases *bases,
                      const NativeLoad *load, Val piece) {
    Code *c = p->c;
    Val first = code_index(c, (int64_t)load->offset);
    Val arg[] = {index_step(c, piece, load->piece, first),
                 code_index(c, (int64_t)load->bytes),
                 pointer_of(p, bases, &load->to, piece, code_index(c, 0))};
    Val result =
        LLVMBuildCall2(c->builder, load_type(c), bases->load, arg, 3, "");
    Val zero = LLVMConstInt(c->i32, 0, false);
    return_unless(c, LLVMBuildICmp(c->builder, LLVMIntEQ, result, zero, ""),
                  result);
}

static void emit_piece(const Program *p, const Bases *bases,
                       const NativeCall *call, Val piece) {
    Code *c = p->c;
    Loop images;
    Val image = code_index(c, 0);
    for (uint32_t i = 0; i < call->n_loads; i++)
        emit_load(p, bases, &call->load[i], piece);
    if (call->n == 0)
        return;
    if (bases->images)
        image = loop_open(c, &images, code_index(c, 0), bases->images, 1);
    emit_kernel_call(p, bases, call, piece, image);
    if (bases->images)
        loop_close(c, &images);
}

/* The call and those that are joined with it; returns how many these are. */
static uint32_t emit_calls(const Program *p, const Bases *bases,
                           const NativeCall *call) {
    Code *c = p->c;
    Loop pieces;
    Val piece = code_index(c, 0);
    uint32_t n = 1;
    if (call->pieces > 1)
        piece = loop_count(c, &pieces, call->pieces);
    emit_piece(p, bases, call, piece);
    for (; call[n - 1].joined; n++)
        emit_piece(p, bases, &call[n], piece);
    if (call->pieces > 1)
        loop_close(c, &pieces);
    return n;
}

/* ---- rooms ---- */

/* How many bytes behind the start of its pool a room is. */
static Val room_place(Code *c, const NativeRoom *room, Val images,
                      const Val *at) {
    Val place = code_index(c, images ? 0 : (int64_t)room->offset);
    for (uint32_t i = 0; i < room->n_after; i++) {
        const NativeAfter *after = &room->after[i];
        Val size = LLVMBuildNSWMul(c->builder, images,
                                   code_index(c, after->image), "");
        size = index_add(c, size, code_index(c, after->fixed));
        place = index_max(c, place, index_add(c, at[after->room], size));
    }
    return place;
}

/* Each behind those that it leans on. */
static void place_room(Code *c, const NativeFunction *f, uint32_t i, Val images,
                       Val *at) {
    const NativeRoom *room = &f->room[i];
    if (at[i])
        return;
    for (uint32_t k = 0; k < room->n_after; k++)
        place_room(c, f, room->after[k].room, images, at);
    at[i] = room_place(c, room, images, at);
}

static void place_rooms(Code *c, const NativeFunction *f, Bases *bases) {
    Val *at = ARENA_ARRAY(c->arena, Val, f->n_rooms);
    for (uint32_t i = 0; i < f->n_rooms; i++) {
        place_room(c, f, i, bases->images, at);
        bases->room[i] = code_bytes_at(c, bases->pool[f->room[i].pool], at[i]);
    }
}

static void array_bases(const Program *p, Val function, const NativeFunction *f,
                        Bases *out) {
    for (uint32_t i = 0; i < f->n_in; i++)
        out->in[i] = pointer_in(p->c, LLVMGetParam(function, 0), i);
    for (uint32_t i = 0; i < f->n_out; i++)
        out->out[i] = pointer_in(p->c, LLVMGetParam(function, 1), i);
    out->weights = LLVMBuildBitCast(p->c->builder, LLVMGetParam(function, 3),
                                    p->c->pointer, "");
    if (f->n_pools)
        out->pool[0] = LLVMBuildBitCast(
            p->c->builder, LLVMGetParam(function, 2), p->c->pointer, "");
    place_rooms(p->c, f, out);
}

/* ---- a bundle ---- */

/* Member `*at` of the structure of pointers. */
static Val next_member(const Program *p, Val io, uint32_t *at) {
    return pointer_in(p->c, io, (*at)++);
}

static void images_base(const Program *p, const NativeFunction *f, Val io,
                        uint32_t *at, Bases *out) {
    Code *c = p->c;
    if (f->images == 1)
        return;
    out->images =
        LLVMBuildPtrToInt(c->builder, next_member(p, io, at), c->index, "");
    Val before = index_sub(c, out->images, code_index(c, 1));
    Val fine = LLVMBuildICmp(c->builder, LLVMIntULT, before,
                             code_index(c, f->images), "");
    return_unless(c, fine, LLVMConstInt(c->i32, (uint64_t)-1, true));
}

/* Which pools does the function use? The first is its argument. */
static bool pool_is_used(const NativeFunction *f, uint32_t pool) {
    bool used = false;
    for (uint32_t i = 0; i < f->n_rooms; i++)
        used |= f->room[i].pool == pool;
    return used;
}

/* A bundle's function takes a structure of pointers. */
static void bundle_bases(const Program *p, Val function,
                         const NativeFunction *f, Bases *out) {
    Code *c = p->c;
    Val io = LLVMGetParam(function, 0);
    uint32_t at = 0;
    for (uint32_t i = 0; i < f->n_in; i++)
        out->in[i] = next_member(p, io, &at);
    for (uint32_t i = 0; i < f->n_out; i++)
        out->out[i] = next_member(p, io, &at);
    if (p->program->where == WEIGHTS_APART)
        out->weights = next_member(p, io, &at);
    if (p->program->where == WEIGHTS_LOADED)
        out->load = LLVMBuildBitCast(c->builder, next_member(p, io, &at),
                                     LLVMPointerType(load_type(c), 0), "");
    out->pool[0] =
        LLVMBuildBitCast(c->builder, LLVMGetParam(function, 1), c->pointer, "");
    for (uint32_t i = 1; i < f->n_pools; i++)
        if (pool_is_used(f, i))
            out->pool[i] = next_member(p, io, &at);
    images_base(p, f, io, &at, out);
    place_rooms(c, f, out);
    if (p->weights)
        out->weights = LLVMConstBitCast(p->weights, c->pointer);
    if (p->program->where == WEIGHTS_PLACED)
        out->weights = out->room[p->program->weights_room];
}

typedef struct Entry {
    bool pointers; /* arguments are pointers to pointers */
    bool returns;  /* 0 */
    void (*bases)(const Program *p, Val function, const NativeFunction *f,
                  Bases *out);
} Entry;

static const Entry entries[] = {
    [ENTRY_ARRAYS] = {true, false, array_bases},
    [ENTRY_ARGS] = {false, false, argument_bases},
    [ENTRY_BUNDLE] = {true, true, bundle_bases},
};

static void emit_function(const Program *p, uint32_t number) {
    Code *c = p->c;
    const NativeFunction *f = &p->program->function[number];
    const Entry *entry = &entries[p->style];
    uint32_t n_args = p->style == ENTRY_ARRAYS   ? 4
                      : p->style == ENTRY_BUNDLE ? 2
                                                 : f->n_in + f->n_out;
    const char *name = p->style == ENTRY_ARRAYS
                           ? arena_printf(c->arena, "entry_%u", number)
                           : f->name;
    Val function = new_function(
        c, name, n_args,
        entry->pointers ? LLVMPointerType(c->pointer, 0) : c->pointer,
        entry->returns ? c->i32 : LLVMVoidTypeInContext(c->context));
    Bases bases = {.in = ARENA_ARRAY(c->arena, Val, f->n_in),
                   .out = ARENA_ARRAY(c->arena, Val, f->n_out),
                   .pool = ARENA_ARRAY(c->arena, Val, f->n_pools),
                   .room = ARENA_ARRAY(c->arena, Val, f->n_rooms)};
    open_function(c, function);
    entry->bases(p, function, f, &bases);
    for (uint32_t i = 0; i < f->n_calls;)
        i += emit_calls(p, &bases, &f->call[i]);
    close_function(c, entry->returns ? LLVMConstInt(c->i32, 0, false) : NULL);
}

const char *emit_weight_bytes(Arena *arena, const Machine *machine,
                              const NativeProgram *program) {
    const char *own = (const char *)program->weights;
    uint64_t n = program->weights_bytes;
    uint32_t one = 1;
    bool little = *(const char *)&one == 1;
    if ((LLVMByteOrder(machine->layout) == LLVMLittleEndian) == little)
        return own;
    char *out = ARENA_ARRAY(arena, char, n);
    for (uint32_t r = 0; r < program->n_runs; r++) {
        const NativeRun *run = &program->run[r];
        uint64_t end = r + 1 < program->n_runs ? run[1].offset : n;
        for (uint64_t i = run->offset; i < end; i++)
            out[i] = own[i ^ (run->size - 1)];
    }
    return out;
}

/* The weights as bytes of the module. */
static Val emit_weights(Code *c, const Machine *machine,
                        const NativeProgram *program) {
    enum { CACHE_LINE = 64 };
    if (program->weights_bytes == 0)
        return NULL;
    Val bytes = LLVMConstStringInContext(
        c->context, emit_weight_bytes(c->arena, machine, program),
        (unsigned)program->weights_bytes, true);
    Val global =
        LLVMAddGlobal(c->module, LLVMTypeOf(bytes),
                      arena_printf(c->arena, "%s_weights", program->name));
    LLVMSetInitializer(global, bytes);
    LLVMSetGlobalConstant(global, true);
    LLVMSetLinkage(global, LLVMInternalLinkage);
    LLVMSetAlignment(global, CACHE_LINE);
    return global;
}

LLVMModuleRef emit_program(Arena *arena, LLVMContextRef context,
                           const Machine *machine, const NativeProgram *program,
                           EntryStyle style) {
    Code c = {.arena = arena,
              .context = context,
              .module =
                  LLVMModuleCreateWithNameInContext(program->name, context),
              .builder = LLVMCreateBuilderInContext(context),
              .f32 = LLVMFloatTypeInContext(context),
              .i32 = LLVMInt32TypeInContext(context),
              .index = LLVMIntPtrTypeInContext(context, machine->layout),
              .lanes = machine->lanes,
              .registers = machine->registers,
              .pairs = machine->pairs,
              .dots = machine->dots};
    c.pointer = LLVMPointerType(c.f32, 0);
    LLVMSetTarget(c.module, machine->triple);
    LLVMSetModuleDataLayout(c.module, machine->layout);
    Val *kernel = ARENA_ARRAY(arena, Val, program->n_kernels);
    for (uint32_t i = 0; i < program->n_kernels; i++)
        kernel[i] = emit_kernel(&c, &program->kernel[i], i);
    Program p = {&c, program, style, kernel, NULL};
    if (style != ENTRY_ARRAYS && program->where == WEIGHTS_INSIDE)
        p.weights = emit_weights(&c, machine, program);
    for (uint32_t i = 0; i < program->n_functions; i++)
        emit_function(&p, i);
    LLVMDisposeBuilder(c.builder);
    char *message = NULL;
    if (LLVMVerifyModule(c.module, LLVMReturnStatusAction, &message))
        bug("LLVM refuses the code of %s: %s", program->name, message);
    LLVMDisposeMessage(message);
    return c.module;
}
