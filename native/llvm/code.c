/* code.c - loops, variables and memory over LLVM-C; see code.h. */
#include "native/llvm/code.h"

#include <llvm-c/DebugInfo.h>
#include <llvm/Config/llvm-config.h>
#include <string.h>

/* ---- constants ---- */

static bool is_vector(Type type) {
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind;
}

static Val splat_constant(Type type, Val scalar) {
    Val lane[64];
    uint32_t n = LLVMGetVectorSize(type);
    for (uint32_t i = 0; i < n; i++)
        lane[i] = scalar;
    return LLVMConstVector(lane, n);
}

Val code_index(const Code *c, int64_t value) {
    return LLVMConstInt(c->index, (uint64_t)value, true);
}

Val code_scalar(const Code *c, double value) {
    return LLVMConstReal(c->f32, value);
}

Val code_float(Val like, double value) {
    Type type = LLVMTypeOf(like);
    if (!is_vector(type))
        return LLVMConstReal(type, value);
    return splat_constant(type, LLVMConstReal(LLVMGetElementType(type), value));
}

Val code_int(Val like, int64_t value) {
    Type type = LLVMTypeOf(like);
    Type lane = is_vector(type) ? LLVMGetElementType(type) : type;
    Val scalar = LLVMConstInt(lane, (uint64_t)value, true);
    return is_vector(type) ? splat_constant(type, scalar) : scalar;
}

Type code_vector(const Code *c, uint32_t lanes) {
    return lanes > 1 ? LLVMVectorType(c->f32, lanes) : c->f32;
}

Type code_int_type(const Code *c, Val like) {
    Type type = LLVMTypeOf(like);
    return is_vector(type) ? LLVMVectorType(c->i32, LLVMGetVectorSize(type))
                           : c->i32;
}

/* ---- loops and branches ---- */

static LLVMBasicBlockRef new_block(Code *c, const char *name) {
    return LLVMAppendBasicBlockInContext(c->context, c->function, name);
}

Val loop_open(Code *c, Loop *loop, Val from, Val to, int64_t step) {
    LLVMBasicBlockRef before = LLVMGetInsertBlock(c->builder);
    loop->body = new_block(c, "body");
    loop->end = new_block(c, "end");
    loop->to = to;
    loop->step = code_index(c, step);
    loop->loops = ++c->loops;
    loop->reloads = c->reloads;
    LLVMBuildCondBr(c->builder, index_less(c, from, to), loop->body, loop->end);
    LLVMPositionBuilderAtEnd(c->builder, loop->body);
    loop->i = LLVMBuildPhi(c->builder, c->index, "i");
    LLVMAddIncoming(loop->i, &from, &before, 1);
    return loop->i;
}

Val loop_count(Code *c, Loop *loop, uint64_t count) {
    return loop_open(c, loop, code_index(c, 0), code_index(c, (int64_t)count),
                     1);
}

/* Before LLVM 17, the loop vectoriser takes strided loads together that lie
 * side by side, and moves them to the first, though the loop stores in between
 * to where the later ones read (LLVM's issue 63602). Rows that are added up in
 * memory make such a loop of the one around them, once they are unrolled: of a
 * transposed convolution on short rows, the loop over taps. */
static bool is_vectorised_wrongly(const Code *c, const Loop *loop) {
    bool around = c->loops > loop->loops, reloads = c->reloads > loop->reloads;
    return LLVM_VERSION_MAJOR < 17 && around && reloads;
}

/* Of the loop that the branch closes; its metadata refers to itself. */
static void forbid_vectors(const Code *c, Val branch) {
    static const char word[] = "llvm.loop.vectorize.enable",
                      kind[] = "llvm.loop";
    LLVMMetadataRef pair[] = {
        LLVMMDStringInContext2(c->context, word, sizeof word - 1),
        LLVMValueAsMetadata(
            LLVMConstInt(LLVMInt1TypeInContext(c->context), 0, false))};
    LLVMMetadataRef self = LLVMTemporaryMDNode(c->context, NULL, 0);
    LLVMMetadataRef both[] = {self, LLVMMDNodeInContext2(c->context, pair, 2)};
    LLVMMetadataRef node = LLVMMDNodeInContext2(c->context, both, 2);
    LLVMMetadataReplaceAllUsesWith(self, node);
    LLVMSetMetadata(branch,
                    LLVMGetMDKindIDInContext(c->context, kind, sizeof kind - 1),
                    LLVMMetadataAsValue(c->context, node));
}

void loop_close(Code *c, Loop *loop) {
    LLVMBasicBlockRef last = LLVMGetInsertBlock(c->builder);
    Val next = index_add(c, loop->i, loop->step);
    Val branch = LLVMBuildCondBr(c->builder, index_less(c, next, loop->to),
                                 loop->body, loop->end);
    if (is_vectorised_wrongly(c, loop))
        forbid_vectors(c, branch);
    LLVMAddIncoming(loop->i, &next, &last, 1);
    LLVMMoveBasicBlockAfter(loop->end, last);
    LLVMPositionBuilderAtEnd(c->builder, loop->end);
}

void branch_open(Code *c, Branch *branch, Val condition) {
    LLVMBasicBlockRef then = new_block(c, "then");
    branch->end = new_block(c, "endif");
    LLVMBuildCondBr(c->builder, condition, then, branch->end);
    LLVMPositionBuilderAtEnd(c->builder, then);
}

void branch_close(Code *c, Branch *branch) {
    LLVMBuildBr(c->builder, branch->end);
    LLVMMoveBasicBlockAfter(branch->end, LLVMGetInsertBlock(c->builder));
    LLVMPositionBuilderAtEnd(c->builder, branch->end);
}

/* ---- variables and memory ---- */

Val code_variable(Code *c, Val first) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(c->builder);
    Val at = LLVMGetFirstInstruction(c->entry);
    if (at)
        LLVMPositionBuilderBefore(c->builder, at);
    else
        LLVMPositionBuilderAtEnd(c->builder, c->entry);
    Val variable = LLVMBuildAlloca(c->builder, LLVMTypeOf(first), "");
    LLVMPositionBuilderAtEnd(c->builder, here);
    code_set(c, variable, first);
    return variable;
}

Val code_get(Code *c, Type type, Val variable) {
    return LLVMBuildLoad2(c->builder, type, variable, "");
}

void code_set(Code *c, Val variable, Val value) {
    LLVMBuildStore(c->builder, value, variable);
}

Val code_at(Code *c, Val base, Val index) {
    return LLVMBuildGEP2(c->builder, c->f32, base, &index, 1, "");
}

/* Before LLVM 15 a pointer knows what it points to. */
static Val as_pointer_to(Code *c, Val at, Type type) {
    return LLVMBuildBitCast(c->builder, at, LLVMPointerType(type, 0), "");
}

static Val byte_at(Code *c, Val base, Val bytes) {
    Type byte = LLVMInt8TypeInContext(c->context);
    base = as_pointer_to(c, base, byte);
    return LLVMBuildGEP2(c->builder, byte, base, &bytes, 1, "");
}

Val code_bytes_at(Code *c, Val base, Val bytes) {
    return as_pointer_to(c, byte_at(c, base, bytes), c->f32);
}

/* No access is aligned to more than a scalar. */
static void align(Val access, Type type) {
    Type lane = is_vector(type) ? LLVMGetElementType(type) : type;
    bool whole = LLVMGetTypeKind(lane) == LLVMIntegerTypeKind;
    LLVMSetAlignment(access,
                     whole ? LLVMGetIntTypeWidth(lane) / 8 : sizeof(float));
}

static Val load_at(Code *c, Val at, Type type) {
    Val value =
        LLVMBuildLoad2(c->builder, type, as_pointer_to(c, at, type), "");
    align(value, type);
    return value;
}

static void store_at(Code *c, Val at, Val value) {
    Type type = LLVMTypeOf(value);
    align(LLVMBuildStore(c->builder, value, as_pointer_to(c, at, type)), type);
}

Val code_load_type(Code *c, Val base, Val bytes, Type type) {
    return load_at(c, byte_at(c, base, bytes), type);
}

void code_store_type(Code *c, Val base, Val bytes, Val value) {
    store_at(c, byte_at(c, base, bytes), value);
}

Val code_load(Code *c, Val base, Val index) {
    return load_at(c, code_at(c, base, index), c->f32);
}

Val code_reload(Code *c, Val base, Val index) {
    c->reloads++;
    return code_load(c, base, index);
}

Val code_load_vector(Code *c, Val base, Val index, uint32_t lanes) {
    return load_at(c, code_at(c, base, index), code_vector(c, lanes));
}

void code_store(Code *c, Val base, Val index, Val value) {
    store_at(c, code_at(c, base, index), value);
}

/* ---- indices ---- */

Val index_add(Code *c, Val a, Val b) {
    return LLVMBuildNSWAdd(c->builder, a, b, "");
}

Val index_sub(Code *c, Val a, Val b) {
    return LLVMBuildNSWSub(c->builder, a, b, "");
}

Val index_mul(Code *c, Val a, uint64_t by) {
    return LLVMBuildNSWMul(c->builder, a, code_index(c, (int64_t)by), "");
}

Val index_step(Code *c, Val a, uint64_t by, Val b) {
    return index_add(c, index_mul(c, a, by), b);
}

Val index_div(Code *c, Val a, uint64_t by) {
    return LLVMBuildUDiv(c->builder, a, code_index(c, (int64_t)by), "");
}

Val index_rem(Code *c, Val a, uint64_t by) {
    return LLVMBuildURem(c->builder, a, code_index(c, (int64_t)by), "");
}

Val index_less(Code *c, Val a, Val b) {
    return LLVMBuildICmp(c->builder, LLVMIntSLT, a, b, "");
}

Val index_max(Code *c, Val a, Val b) {
    return code_select(c, index_less(c, a, b), b, a);
}

Val index_min(Code *c, Val a, Val b) {
    return code_select(c, index_less(c, b, a), b, a);
}

/* ---- whole numbers ---- */

Type int_type(const Code *c, uint32_t bits, uint32_t lanes) {
    Type lane = LLVMIntTypeInContext(c->context, bits);
    return lanes > 1 ? LLVMVectorType(lane, lanes) : lane;
}

Type int_like(const Code *c, Val like, uint32_t bits) {
    Type type = LLVMTypeOf(like);
    return int_type(c, bits, is_vector(type) ? LLVMGetVectorSize(type) : 1);
}

Val int_add(Code *c, Val a, Val b) {
    return LLVMBuildAdd(c->builder, a, b, "");
}

Val int_sub(Code *c, Val a, Val b) {
    return LLVMBuildSub(c->builder, a, b, "");
}

Val int_mul(Code *c, Val a, Val b) {
    return LLVMBuildMul(c->builder, a, b, "");
}

Val int_less(Code *c, Val a, Val b) {
    return LLVMBuildICmp(c->builder, LLVMIntSLT, a, b, "");
}

Val int_max(Code *c, Val a, Val b) {
    return code_select(c, int_less(c, a, b), b, a);
}

Val int_min(Code *c, Val a, Val b) {
    return code_select(c, int_less(c, b, a), b, a);
}

Val int_cast(Code *c, Val a, uint32_t bits) {
    return LLVMBuildIntCast2(c->builder, a, int_like(c, a, bits), true, "");
}

Val int_shift(Code *c, Val a, Val by) {
    return LLVMBuildAShr(c->builder, a, by, "");
}

static Val lane_numbers(Code *c, uint32_t n, uint32_t first, uint32_t step) {
    Val *lane = ARENA_ARRAY(c->arena, Val, n);
    for (uint32_t i = 0; i < n; i++)
        lane[i] = LLVMConstInt(c->i32, first + i * step, false);
    return LLVMConstVector(lane, n);
}

Val code_splat(Code *c, Val scalar, uint32_t lanes) {
    if (lanes < 2)
        return scalar;
    Type type = LLVMVectorType(LLVMTypeOf(scalar), lanes);
    Val first = LLVMBuildInsertElement(c->builder, LLVMGetUndef(type), scalar,
                                       LLVMConstInt(c->i32, 0, false), "");
    return LLVMBuildShuffleVector(c->builder, first, LLVMGetUndef(type),
                                  lane_numbers(c, lanes, 0, 0), "");
}

Val int_every(Code *c, Val vector, uint32_t first, uint32_t step) {
    uint32_t n = LLVMGetVectorSize(LLVMTypeOf(vector)) / step;
    return LLVMBuildShuffleVector(c->builder, vector,
                                  LLVMGetUndef(LLVMTypeOf(vector)),
                                  lane_numbers(c, n, first, step), "");
}

/* ---- floats ---- */

Val float_add(Code *c, Val a, Val b) {
    return LLVMBuildFAdd(c->builder, a, b, "");
}

Val float_sub(Code *c, Val a, Val b) {
    return LLVMBuildFSub(c->builder, a, b, "");
}

Val float_mul(Code *c, Val a, Val b) {
    return LLVMBuildFMul(c->builder, a, b, "");
}

Val float_div(Code *c, Val a, Val b) {
    return LLVMBuildFDiv(c->builder, a, b, "");
}

Val float_neg(Code *c, Val a) {
    return LLVMBuildFNeg(c->builder, a, "");
}

static Val call_intrinsic(Code *c, const char *name, Type *on, size_t n_on,
                          Val *args, unsigned n) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    Type type = LLVMIntrinsicGetType(c->context, id, on, n_on);
    Val callee = LLVMGetIntrinsicDeclaration(c->module, id, on, n_on);
    return LLVMBuildCall2(c->builder, type, callee, args, n, "");
}

Val code_intrinsic(Code *c, const char *name, Val *args, unsigned n) {
    Type on = LLVMTypeOf(args[0]);
    return call_intrinsic(c, name, &on, 1, args, n);
}

Val code_intrinsic_plain(Code *c, const char *name, Val *args, unsigned n) {
    return call_intrinsic(c, name, NULL, 0, args, n);
}

Val float_fma(Code *c, Val a, Val b, Val d) {
    return code_intrinsic(c, "llvm.fmuladd", (Val[]){a, b, d}, 3);
}

Val float_abs(Code *c, Val a) {
    return code_intrinsic(c, "llvm.fabs", &a, 1);
}

Val float_sqrt(Code *c, Val a) {
    return code_intrinsic(c, "llvm.sqrt", &a, 1);
}

Val float_less(Code *c, Val a, Val b) {
    return LLVMBuildFCmp(c->builder, LLVMRealOLT, a, b, "");
}

Val float_less_equal(Code *c, Val a, Val b) {
    return LLVMBuildFCmp(c->builder, LLVMRealOLE, a, b, "");
}

Val float_equal(Code *c, Val a, Val b) {
    return LLVMBuildFCmp(c->builder, LLVMRealOEQ, a, b, "");
}

Val code_select(Code *c, Val condition, Val a, Val b) {
    return LLVMBuildSelect(c->builder, condition, a, b, "");
}

Val float_max(Code *c, Val a, Val b) {
    return code_select(c, float_less(c, a, b), b, a);
}

Val float_min(Code *c, Val a, Val b) {
    return code_select(c, float_less(c, b, a), b, a);
}

/* `b` if `wins`, or where it is NaN. */
static Val or_nan(Code *c, Val wins, Val a, Val b) {
    Val nan = LLVMBuildFCmp(c->builder, LLVMRealUNO, b, b, "");
    return code_select(c, LLVMBuildOr(c->builder, wins, nan, ""), b, a);
}

Val float_largest(Code *c, Val a, Val b) {
    return or_nan(c, float_less(c, a, b), a, b);
}

Val float_least(Code *c, Val a, Val b) {
    return or_nan(c, float_less(c, b, a), a, b);
}

Val float_bits(Code *c, Val a) {
    return LLVMBuildBitCast(c->builder, a, code_int_type(c, a), "");
}

Val float_of_bits(Code *c, Val bits, Val like) {
    return LLVMBuildBitCast(c->builder, bits, LLVMTypeOf(like), "");
}

Val float_of_int(Code *c, Val a, Val like) {
    return LLVMBuildSIToFP(c->builder, a, LLVMTypeOf(like), "");
}

Val float_of_index(Code *c, Val a) {
    Val narrow = LLVMBuildIntCast2(c->builder, a, c->i32, true, "");
    return LLVMBuildSIToFP(c->builder, narrow, c->f32, "");
}

Val float_of_bool(Code *c, Val a, Val like) {
    return code_select(c, a, code_float(like, 1), code_float(like, 0));
}

Val float_copysign(Code *c, Val a, Val b) {
    Val sign = float_bits(c, b), rest = float_bits(c, a);
    sign = LLVMBuildAnd(c->builder, sign, code_int(sign, INT32_MIN), "");
    rest = LLVMBuildAnd(c->builder, rest, code_int(rest, INT32_MAX), "");
    return float_of_bits(c, LLVMBuildOr(c->builder, sign, rest, ""), a);
}

Val float_sum(Code *c, Val vector) {
    Type type = LLVMTypeOf(vector);
    if (!is_vector(type))
        return vector;
    /* the upper half onto the lower one, until one is left */
    for (uint32_t n = LLVMGetVectorSize(type); n > 1; n /= 2) {
        Val low[64], high[64];
        for (uint32_t i = 0; i < n / 2; i++) {
            low[i] = LLVMConstInt(c->i32, i, false);
            high[i] = LLVMConstInt(c->i32, n / 2 + i, false);
        }
        Val undefined = LLVMGetUndef(LLVMTypeOf(vector));
        Val a = LLVMBuildShuffleVector(c->builder, vector, undefined,
                                       LLVMConstVector(low, n / 2), "");
        Val b = LLVMBuildShuffleVector(c->builder, vector, undefined,
                                       LLVMConstVector(high, n / 2), "");
        vector = float_add(c, a, b);
    }
    return LLVMBuildExtractElement(c->builder, vector,
                                   LLVMConstInt(c->i32, 0, false), "");
}
