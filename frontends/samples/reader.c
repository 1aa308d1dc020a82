/* reader.c - samples from files and folders; see frontends/samples.h.
 *
 * Every file gives, for an input, one sample or a stack of them: an array with
 * so many times the input's elements. Names decide the order.
 */
#include "base/vec.h"
#include "frontends/frontend.h"
#include "frontends/samples/samples_int.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

typedef VEC(const float *) Stack;
typedef VEC(const char *) Names;

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const SampleOptions *o;
    uint32_t n_inputs;
    const SampleInput *input;
    const char *array; /* of .npz, or NULL */
    Names name;
    Stack value;         /* n_inputs a sample */
    const char *archive; /* the only file, a .npz, or NULL */
} Reader;

static bool fail(Reader *r, const char *path, const char *what) {
    diag_error(r->diag, (Loc){path, 0, 0}, "%s", what);
    return false;
}

bool samples_factors(const char *text, uint32_t *n,
                     double out[SAMPLE_CHANNELS]) {
    for (*n = 0; *n < SAMPLE_CHANNELS; text++) {
        char *end;
        out[*n] = strtod(text, &end);
        if (end == text || !isfinite(out[*n]))
            return false;
        ++*n;
        text = end;
        if (!*text)
            return true;
        if (*text != ',')
            return false;
    }
    return false;
}

/* ---- elements to values ---- */

static bool is_chw(const Reader *r, const Shape *shape) {
    if (r->o->layout)
        return !strcmp(r->o->layout, "chw");
    uint32_t c = shape_dim(shape, 1), last = shape_dim(shape, 3);
    return shape->rank != 4 || c == 1 || c == 3 || c == 4 ||
           !(last == 1 || last == 3 || last == 4);
}

static uint32_t channel_at(const Shape *shape, bool chw, uint64_t i) {
    uint64_t plane = (uint64_t)shape_dim(shape, 2) * shape_dim(shape, 3);
    uint32_t c = chw ? (uint32_t)(i / plane)
                     : (uint32_t)(i % shape_dim(shape, shape->rank - 1));
    return c % SAMPLE_CHANNELS;
}

static double factor_at(uint32_t n, const double *list, uint32_t channel,
                        double absent) {
    return !n ? absent : list[n == 1 ? 0 : channel % n];
}

static void scale_values(const Reader *r, uint32_t k, float *value) {
    const Shape *shape = &r->input[k].shape;
    bool chw = is_chw(r, shape);
    if (!r->o->n_means && !r->o->n_scales)
        return;
    for (uint64_t i = 0, n = shape_count(shape); i < n; i++) {
        uint32_t c = channel_at(shape, chw, i);
        double mean = factor_at(r->o->n_means, r->o->mean, c, 0);
        value[i] = (float)(((double)value[i] - mean) *
                           factor_at(r->o->n_scales, r->o->scale, c, 1));
    }
}

/* A volume with its channels last becomes one with them first, or the other way
 * round: [a, b] of `inner` axes swapped. */
static const float *swap_axes(Arena *arena, const float *from, size_t a,
                              size_t b) {
    float *out = ARENA_ARRAY(arena, float, a *b);
    for (size_t i = 0; i < a; i++)
        for (size_t k = 0; k < b; k++)
            out[k * a + i] = from[i * b + k];
    return out;
}

/* One sample as the input has it; `dim`: its last three sizes. */
static float *arrange(const Reader *r, uint32_t k, const float *from,
                      const uint64_t dim[3]) {
    const Shape *s = &r->input[k].shape;
    uint64_t n = shape_count(s);
    bool volume = s->rank == 4 && s->dim[0] == 1;
    bool same = volume && dim[0] == s->dim[1] && dim[1] == s->dim[2] &&
                dim[2] == s->dim[3];
    if (volume && !same && dim[0] == s->dim[2] && dim[1] == s->dim[3] &&
        dim[2] == s->dim[1]) /* pixels, then channels */
        from = swap_axes(r->arena, from, dim[0] * dim[1], dim[2]);
    else if (volume && !same && dim[1] == s->dim[1] && dim[2] == s->dim[2] &&
             dim[0] == s->dim[3])
        from = swap_axes(r->arena, from, dim[0], dim[1] * dim[2]);
    float *out = ARENA_COPY(r->arena, float, from, n);
    scale_values(r, k, out);
    return out;
}

static bool add_npy(Reader *r, const char *path, uint32_t k, const Npy *npy,
                    Stack *to) {
    uint64_t each = shape_count(&r->input[k].shape);
    uint64_t dim[3] = {1, 1, 1};
    if (!npy->count || npy->count % each)
        return fail(r, path,
                    arena_printf(r->arena,
                                 "%llu values, but input %s is %s: neither one "
                                 "sample nor a stack of them",
                                 (unsigned long long)npy->count,
                                 r->input[k].name,
                                 shape_text(r->arena, &r->input[k].shape)));
    for (uint32_t i = 0; i < 3 && i < npy->rank; i++)
        dim[2 - i] = npy->dim[npy->rank - 1 - i];
    for (uint64_t at = 0; at < npy->count; at += each)
        vec_push(r->arena, to, arrange(r, k, npy->data + at, dim));
    return true;
}

/* ---- files ---- */

static bool add_picture(Reader *r, const char *path, uint32_t k, Bytes file,
                        Stack *to) {
    const Shape *s = &r->input[k].shape;
    bool chw = is_chw(r, s);
    uint32_t c = shape_dim(s, chw ? 1 : 3), h = shape_dim(s, chw ? 2 : 1);
    uint32_t w = shape_dim(s, chw ? 3 : 2);
    Picture picture;
    if (s->rank != 4 || s->dim[0] != 1 || (c != 1 && c != 3))
        return fail(r, path,
                    "a picture, but the input has not 1 or 3 channels "
                    "of pixels");
    if (!picture_read(r->arena, r->diag, path, file, &picture))
        return false;
    const float *rgb = picture_resize(
        r->arena, &picture, r->o->resize ? r->o->resize : "crop", w, h);
    size_t pixels = (size_t)w * h;
    float *out = ARENA_ARRAY(r->arena, float, pixels *c);
    for (size_t i = 0; i < pixels; i++)
        for (size_t k_c = 0; k_c < c; k_c++) {
            const float *p = rgb + i * 3;
            double grey = 0.299 * (double)p[0] + 0.587 * (double)p[1] +
                          0.114 * (double)p[2];
            out[chw ? k_c * pixels + i : i * c + k_c] =
                c == 1 ? (float)grey : p[r->o->bgr ? 2 - k_c : k_c];
        }
    scale_values(r, k, out);
    vec_push(r->arena, to, out);
    return true;
}

static bool add_raw(Reader *r, const char *path, uint32_t k, Bytes file,
                    Stack *to) {
    uint64_t each = shape_count(&r->input[k].shape);
    const char *kind = r->o->raw                    ? r->o->raw
                       : file.len % (4 * each) == 0 ? "f32"
                                                    : "u8";
    size_t size = !strcmp(kind, "f32") ? 4 : 1;
    Npy npy = {.rank = 1, .count = file.len / size};
    npy.data = ARENA_ARRAY(r->arena, float, npy.count);
    for (uint64_t i = 0; i < npy.count; i++)
        if (size == 4)
            memcpy(&npy.data[i], file.at + 4 * i, 4);
        else
            npy.data[i] = !strcmp(kind, "i8")
                              ? (float)((file.at[i] ^ 128) - 128)
                              : file.at[i];
    return add_npy(r, path, k, &npy, to);
}

/* The array that is meant: named, or as the input, or the only one that can be.
 */
static const char *array_of(Reader *r, const char *path, Bytes file,
                            uint32_t k) {
    const char *const *names = npz_names(r->arena, r->diag, path, file);
    const char *all = "";
    if (!names)
        return NULL;
    if (r->array)
        return r->array;
    for (const char *const *name = names; *name; name++)
        if (!strcmp(*name, r->input[k].name))
            return *name;
    if (r->n_inputs == 1 && names[0] && !names[1])
        return names[0];
    for (const char *const *name = names; *name; name++)
        all = arena_printf(r->arena, "%s %s", all, *name);
    fail(r, path,
         arena_printf(r->arena, "no array \"%s\"; say FILE:ARRAY, of:%s",
                      r->input[k].name, all));
    return NULL;
}

static bool add_npz(Reader *r, const char *path, uint32_t k, Bytes file,
                    Stack *to) {
    Npy npy;
    const char *array = array_of(r, path, file, k);
    return array && npz_array(r->arena, r->diag, path, file, array, &npy) &&
           add_npy(r, path, k, &npy, to);
}

static bool ends(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && !strcasecmp(path + n - m, suffix);
}

static bool is_sample_file(const char *path) {
    static const char *const suffix[] = {".npy", ".npz", ".pb",  ".raw",
                                         ".bin", ".png", ".jpg", ".jpeg"};
    for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++)
        if (ends(path, suffix[i]))
            return true;
    return false;
}

/* What a file gives for input k. */
static bool add_file(Reader *r, const char *path, uint32_t k, Stack *to) {
    Npy npy;
    Bytes file;
    if (ends(path, ".npy") || ends(path, ".pb"))
        return tensor_file_read(r->arena, r->diag, path, &npy) &&
               add_npy(r, path, k, &npy, to);
    if (!file_read(r->arena, r->diag, path, &file))
        return false;
    if (picture_looks(file))
        return add_picture(r, path, k, file, to);
    if (ends(path, ".raw") || ends(path, ".bin"))
        return add_raw(r, path, k, file, to);
    if (ends(path, ".npz"))
        return add_npz(r, path, k, file, to);
    return fail(r, path,
                "no sample: neither .npy, .npz, .pb, .raw, PNG nor JPEG");
}

/* ---- folders ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool list(Reader *r, const char *path, Names *out) {
    DIR *dir = opendir(path);
    if (!dir)
        return fail(r, path, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            vec_push(r->arena, out,
                     (const char *)arena_printf(r->arena, "%s/%s", path,
                                                entry->d_name));
    closedir(dir);
    if (out->n)
        qsort(out->at, out->n, sizeof *out->at, by_name);
    return true;
}

static bool is_folder(const char *path) {
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

/* Samples whose inputs come one from each stack. */
static bool add_samples(Reader *r, const char *path, const Stack *stack) {
    for (uint32_t k = 1; k < r->n_inputs; k++)
        if (stack[k].n != stack[0].n)
            return fail(r, path,
                        arena_printf(r->arena,
                                     "%u samples of input %s, %u of input %s",
                                     stack[0].n, r->input[0].name, stack[k].n,
                                     r->input[k].name));
    for (uint32_t s = 0; s < stack[0].n; s++) {
        vec_push(r->arena, &r->name,
                 stack[0].n == 1
                     ? path
                     : (const char *)arena_printf(r->arena, "%s[%u]", path, s));
        for (uint32_t k = 0; k < r->n_inputs; k++)
            vec_push(r->arena, &r->value, stack[k].at[s]);
    }
    return true;
}

/* input_0.pb, input_1.pb...: as ONNX's test data has them. */
static const char *numbered(Reader *r, const char *path, uint32_t k) {
    static const char *const suffix[] = {"pb", "npy"};
    for (int i = 0; i < 2; i++) {
        const char *file =
            arena_printf(r->arena, "%s/input_%u.%s", path, k, suffix[i]);
        if (file_exists(file))
            return file;
    }
    return NULL;
}

static bool add_path(Reader *r, const char *path, uint32_t depth);

/* A folder for each input, by name: samples in the order of the files. */
static bool add_by_input(Reader *r, const char *path, Stack *stack) {
    for (uint32_t k = 0; k < r->n_inputs; k++) {
        Names names = {0};
        if (!list(r, arena_printf(r->arena, "%s/%s", path, r->input[k].name),
                  &names))
            return false;
        for (uint32_t i = 0; i < names.n; i++)
            if (is_sample_file(names.at[i]) &&
                !add_file(r, names.at[i], k, &stack[k]))
                return false;
    }
    return add_samples(r, path, stack);
}

static bool add_numbered(Reader *r, const char *path, Stack *stack) {
    for (uint32_t k = 0; k < r->n_inputs; k++) {
        const char *file = numbered(r, path, k);
        if (!file)
            return fail(r, path,
                        arena_printf(r->arena, "no input_%u.pb or .npy", k));
        if (!add_file(r, file, k, &stack[k]))
            return false;
    }
    return add_samples(r, path, stack);
}

static bool add_folder(Reader *r, const char *path, uint32_t depth) {
    enum { DEEPEST = 8 };
    Names names = {0};
    Stack *stack = ARENA_ARRAY(r->arena, Stack, r->n_inputs);
    if (numbered(r, path, 0))
        return add_numbered(r, path, stack);
    if (r->n_inputs > 1 &&
        is_folder(arena_printf(r->arena, "%s/%s", path, r->input[0].name)))
        return add_by_input(r, path, stack);
    if (!list(r, path, &names))
        return false;
    bool ok = true;
    for (uint32_t i = 0; i < names.n; i++)
        if (is_folder(names.at[i]) ? depth < DEEPEST
                                   : is_sample_file(names.at[i]))
            ok &= add_path(r, names.at[i], depth + 1);
    return ok;
}

static bool add_path(Reader *r, const char *path, uint32_t depth) {
    Stack *stack = ARENA_ARRAY(r->arena, Stack, r->n_inputs);
    if (is_folder(path))
        return add_folder(r, path, depth);
    if (r->n_inputs > 1 && !ends(path, ".npz"))
        return fail(r, path,
                    arena_printf(r->arena,
                                 "the network has %u inputs: samples are .npz "
                                 "files, or a folder for each input",
                                 r->n_inputs));
    for (uint32_t k = 0; k < r->n_inputs; k++)
        if (!add_file(r, path, k, &stack[k]))
            return false;
    if (!depth && ends(path, ".npz"))
        r->archive = path;
    return add_samples(r, path, stack);
}

/* ---- labels ---- */

static bool labels_of_npy(Reader *r, const char *path, const Npy *npy,
                          const int32_t **out, uint32_t *n) {
    int32_t *label = ARENA_ARRAY(r->arena, int32_t, npy->count);
    for (uint64_t i = 0; i < npy->count; i++) {
        if (!(npy->data[i] >= 0 && npy->data[i] < 1e9f))
            return fail(r, path, "labels are whole numbers from 0");
        label[i] = (int32_t)npy->data[i];
    }
    *out = label;
    *n = (uint32_t)npy->count;
    return true;
}

static bool labels_of_text(Reader *r, const char *path, Bytes file,
                           const int32_t **out, uint32_t *n) {
    const char *at = arena_strndup(r->arena, (const char *)file.at, file.len);
    VEC(int32_t) label = {0};
    for (;;) {
        at += strspn(at, " \t\r\n,");
        if (!*at)
            break;
        char *end;
        long value = strtol(at, &end, 10);
        if (end == at || value < 0 || value > INT32_MAX)
            return fail(r, path, "labels are whole numbers from 0");
        vec_push(r->arena, &label, (int32_t)value);
        at = end;
    }
    *out = label.at;
    *n = label.n;
    return true;
}

/* A path, its array and its slice. */
typedef struct Where {
    const char *path, *array;
    uint32_t first, last;
} Where;

static Where where(Arena *arena, const char *text) {
    Where w = {text, NULL, 0, UINT32_MAX};
    const char *at = strrchr(text, '@');
    unsigned first, last;
    if (at && !file_exists(text) && sscanf(at, "@%u-%u", &first, &last) == 2) {
        w = (Where){arena_strndup(arena, text, (size_t)(at - text)), NULL,
                    first, last};
        text = w.path;
    }
    const char *colon = strrchr(text, ':');
    if (colon && !file_exists(text)) {
        w.array = colon + 1;
        w.path = arena_strndup(arena, text, (size_t)(colon - text));
    }
    return w;
}

static bool read_labels(Reader *r, const char *text, const int32_t **out,
                        uint32_t *n) {
    Where w = where(r->arena, text);
    Npy npy;
    Bytes file;
    if (ends(w.path, ".npy"))
        return npy_read(r->arena, r->diag, w.path, &npy) &&
               labels_of_npy(r, w.path, &npy, out, n);
    if (!file_read(r->arena, r->diag, w.path, &file))
        return false;
    if (ends(w.path, ".npz"))
        return npz_array(r->arena, r->diag, w.path, file,
                         w.array ? w.array : "labels", &npy) &&
               labels_of_npy(r, w.path, &npy, out, n);
    return labels_of_text(r, w.path, file, out, n);
}

/* An archive's array "labels" is taken where it has one. */
static bool find_labels(Reader *r, const int32_t **out, uint32_t *n) {
    Bytes file;
    if (r->o->labels)
        return read_labels(r, r->o->labels, out, n);
    if (!r->archive || !file_read(r->arena, r->diag, r->archive, &file))
        return true;
    const char *const *names = npz_names(r->arena, r->diag, r->archive, file);
    for (; names && *names; names++)
        if (!strcmp(*names, "labels"))
            return read_labels(r, r->archive, out, n);
    return true;
}

/* ---- the whole ---- */

bool samples_read(Arena *arena, Diag *diag, const SampleOptions *options,
                  uint32_t n_inputs, const SampleInput *inputs,
                  SampleSet *out) {
    Where w = where(arena, options->path);
    Reader r = {.arena = arena,
                .diag = diag,
                .o = options,
                .n_inputs = n_inputs,
                .input = inputs,
                .array = w.array};
    uint32_t n_labels = 0;
    const int32_t *label = NULL;
    if (!file_exists(w.path))
        return fail(&r, w.path, "no such file or folder");
    if (!add_path(&r, w.path, 0) || !find_labels(&r, &label, &n_labels))
        return false;
    if (label && n_labels != r.name.n)
        return fail(&r, w.path,
                    arena_printf(arena, "%u samples, but %u labels", r.name.n,
                                 n_labels));
    if (w.first >= r.name.n)
        return fail(
            &r, w.path,
            r.name.n
                ? arena_printf(arena, "only %u samples are there", r.name.n)
                : "no samples: .npy, .npz, .pb, .raw, PNG or JPEG");
    uint32_t end = w.last < r.name.n ? w.last + 1 : r.name.n;
    if (end <= w.first)
        return fail(&r, w.path, "a slice of no samples");
    *out = (SampleSet){end - w.first, n_inputs, r.name.at + w.first,
                       r.value.at + (size_t)w.first * n_inputs,
                       label ? label + w.first : NULL};
    return true;
}
