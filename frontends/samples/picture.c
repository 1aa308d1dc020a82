/* picture.c - PNG and JPEG as bytes of red, green and blue; see samples_int.h.
 *
 * Decoded by libpng and libjpeg; what these make is the same on every
 * processor. Sizes change by a filter in doubles, the horizontal axis first.
 */
#include "frontends/samples/samples_int.h"

#include <math.h>
#include <string.h>

enum {
    MOST_PIXELS = 1 << 26,
    MOST_SCANS = 100 /* each goes through all pixels; usual are 1 to 12 */
};

static const uint8_t png_magic[] = {0x89, 'P', 'N', 'G'};
static const uint8_t jpeg_magic[] = {0xff, 0xd8, 0xff};

static bool starts(Bytes file, const uint8_t *magic, size_t n) {
    return file.len >= n && !memcmp(file.at, magic, n);
}

bool picture_looks(Bytes file) {
    return starts(file, png_magic, sizeof png_magic) ||
           starts(file, jpeg_magic, sizeof jpeg_magic);
}

static bool fail(Diag *diag, const char *path, const char *what) {
    diag_error(diag, (Loc){path, 0, 0}, "%s", what);
    return false;
}

#ifdef HAVE_PNG
#include <png.h>

static bool read_png(Arena *arena, Diag *diag, const char *path, Bytes file,
                     Picture *out) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, file.at, file.len))
        return fail(diag, path,
                    arena_printf(arena, "not a PNG that can be read: %s",
                                 image.message));
    if ((uint64_t)image.width * image.height > MOST_PIXELS) {
        png_image_free(&image);
        return fail(diag, path, "a picture of more than 67,108,864 pixels");
    }
    image.format = PNG_FORMAT_RGB;
    uint8_t *rgb = arena_alloc_raw(arena, PNG_IMAGE_SIZE(image), 16);
    png_color black = {0, 0, 0};
    if (!png_image_finish_read(&image, &black, rgb, 0, NULL))
        return fail(diag, path,
                    arena_printf(arena, "a damaged PNG: %s", image.message));
    *out = (Picture){image.width, image.height, rgb};
    return true;
}
#else
static bool read_png(Arena *arena, Diag *diag, const char *path, Bytes file,
                     Picture *out) {
    (void)arena, (void)file, (void)out;
    return fail(diag, path, "this amphora was built without libpng");
}
#endif

#ifdef HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h> /* its codes depend on what jpeglib.h defines */

typedef struct JpegErrors {
    struct jpeg_error_mgr manager; /* first: libjpeg knows this alone */
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
} JpegErrors;

static void jpeg_fail(j_common_ptr jpeg) {
    JpegErrors *errors = (JpegErrors *)(void *)jpeg->err;
    jpeg->err->format_message(jpeg, errors->text);
    longjmp(errors->back, 1);
}

/* What libjpeg only warns of: it fills with gray what is damaged or cut off.
 * Bytes too many between parts change no pixel, and are common. */
static void jpeg_warned(j_common_ptr jpeg, int level) {
    if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA)
        jpeg_fail(jpeg);
}

/* A progressive file can be small and have scans without end. */
static void jpeg_progress(j_common_ptr jpeg) {
    if (((j_decompress_ptr)jpeg)->input_scan_number <= MOST_SCANS)
        return;
    JpegErrors *errors = (JpegErrors *)(void *)jpeg->err;
    snprintf(errors->text, sizeof errors->text, "more than %d scans",
             MOST_SCANS);
    longjmp(errors->back, 1);
}

/* After jpeg_create: any error comes back by the jump of the caller. */
static const char *decode(Arena *arena, struct jpeg_decompress_struct *jpeg,
                          Bytes file, Picture *out) {
    jpeg_mem_src(jpeg, file.at, file.len);
    jpeg_read_header(jpeg, TRUE);
    if ((uint64_t)jpeg->image_width * jpeg->image_height > MOST_PIXELS)
        return "a picture of more than 67,108,864 pixels";
    jpeg->out_color_space = JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg_start_decompress(jpeg);
    size_t row = 3 * (size_t)jpeg->output_width;
    uint8_t *rgb = arena_alloc_raw(arena, row * jpeg->output_height, 16);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW to = rgb + row * jpeg->output_scanline;
        jpeg_read_scanlines(jpeg, &to, 1);
    }
    *out = (Picture){jpeg->output_width, jpeg->output_height, rgb};
    jpeg_finish_decompress(jpeg);
    return NULL;
}

static bool read_jpeg(Arena *arena, Diag *diag, const char *path, Bytes file,
                      Picture *out) {
    struct jpeg_decompress_struct jpeg = {0};
    struct jpeg_progress_mgr progress = {.progress_monitor = jpeg_progress};
    JpegErrors errors;
    jpeg.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = jpeg_fail;
    errors.manager.emit_message = jpeg_warned;
    if (setjmp(errors.back)) {
        jpeg_destroy_decompress(&jpeg);
        return fail(diag, path,
                    arena_printf(arena, "a damaged JPEG: %s", errors.text));
    }
    jpeg_create_decompress(&jpeg);
    jpeg.progress = &progress;
    const char *wrong = decode(arena, &jpeg, file, out);
    jpeg_destroy_decompress(&jpeg);
    return !wrong || fail(diag, path, wrong);
}
#else
static bool read_jpeg(Arena *arena, Diag *diag, const char *path, Bytes file,
                      Picture *out) {
    (void)arena, (void)file, (void)out;
    return fail(diag, path, "this amphora was built without libjpeg");
}
#endif

bool picture_read(Arena *arena, Diag *diag, const char *path, Bytes file,
                  Picture *out) {
    return starts(file, png_magic, sizeof png_magic)
               ? read_png(arena, diag, path, file, out)
               : read_jpeg(arena, diag, path, file, out);
}

/* ---- sizes ---- */

/* Where an axis of the output lies on one of the input: output i covers
 * [origin + i * step, origin + (i + 1) * step). */
typedef struct Axis {
    double origin, step;
    uint32_t from, to; /* sizes */
} Axis;

/* One line of three colours, `stride` pixels from one to the next. */
static void resize_line(const Axis *axis, const float *from, size_t from_stride,
                        float *to, size_t to_stride) {
    double reach = fmax(axis->step, 1);
    for (uint32_t i = 0; i < axis->to; i++) {
        double centre = axis->origin + (i + 0.5) * axis->step;
        double sum[3] = {0}, total = 0;
        bool inside = centre >= 0 && centre <= axis->from;
        int64_t first = (int64_t)floor(centre - reach);
        int64_t last = (int64_t)ceil(centre + reach);
        for (int64_t k = first; inside && k <= last; k++) {
            double weight = 1 - fabs((double)k + 0.5 - centre) / reach;
            if (weight <= 0 || k < 0 || k >= axis->from)
                continue;
            total += weight;
            for (int c = 0; c < 3; c++)
                sum[c] +=
                    weight *
                    (double)from[((size_t)k * from_stride) * 3 + (size_t)c];
        }
        for (int c = 0; c < 3; c++)
            to[i * to_stride * 3 + (size_t)c] =
                total > 0 ? (float)(sum[c] / total) : 0;
    }
}

const float *picture_resize(Arena *arena, const Picture *from, const char *how,
                            uint32_t width, uint32_t height) {
    double x = (double)from->width / width, y = (double)from->height / height;
    double both = !strcmp(how, "fit") ? fmax(x, y) : fmin(x, y);
    if (!strcmp(how, "stretch"))
        both = 0;
    double step_x = both > 0 ? both : x, step_y = both > 0 ? both : y;
    Axis across = {(from->width - step_x * width) / 2, step_x, from->width,
                   width};
    Axis down = {(from->height - step_y * height) / 2, step_y, from->height,
                 height};
    size_t pixels = (size_t)from->width * from->height;
    float *whole = ARENA_ARRAY(arena, float, pixels * 3);
    float *narrow = ARENA_ARRAY(arena, float, (size_t)width * from->height * 3);
    float *out = ARENA_ARRAY(arena, float, (size_t)width *height * 3);
    for (size_t i = 0; i < pixels * 3; i++)
        whole[i] = from->rgb[i];
    for (size_t row = 0; row < from->height; row++)
        resize_line(&across, whole + row * from->width * 3, 1,
                    narrow + row * width * 3, 1);
    for (size_t column = 0; column < width; column++)
        resize_line(&down, narrow + column * 3, width, out + column * 3, width);
    return out;
}
