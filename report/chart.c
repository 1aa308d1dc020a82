/* chart.c - points in a plane; see chart.h. */
#include "report/chart.h"

#include "report/html.h"

enum {
    WIDTH = 500,
    HEIGHT = 340,
    LEFT = 76,
    RIGHT = 15,
    TOP = 12,
    BOTTOM = 45,
    TICKS = 6
};

Chart chart_new(Text *to, const char *x_title, const char *y_title) {
    return (Chart){to,
                   x_title,
                   y_title,
                   {UINT64_MAX, 0, LEFT, WIDTH - LEFT - RIGHT},
                   {UINT64_MAX, 0, HEIGHT - BOTTOM, TOP + BOTTOM - HEIGHT}};
}

static double place(const Scale *s, uint64_t value) {
    double span = s->high > s->low ? (double)(s->high - s->low) : 1;
    return s->at + ((double)value - (double)s->low) / span * s->pixels;
}

double chart_x(const Chart *c, uint64_t value) {
    return place(&c->x, value);
}

double chart_y(const Chart *c, uint64_t value) {
    return place(&c->y, value);
}

static void widen(Scale *s, uint64_t value) {
    s->low = value < s->low ? value : s->low;
    s->high = value > s->high ? value : s->high;
}

void chart_widen(Chart *c, uint64_t x, uint64_t y) {
    widen(&c->x, x);
    widen(&c->y, y);
}

/* A little room on both sides. */
static void loosen(Scale *s) {
    uint64_t room = (s->high - s->low) / 20 + 1;
    s->low -= room < s->low ? room : s->low;
    s->high += room;
}

static void ticks(Text *to, const Scale *s, bool across) {
    uint64_t step = html_step(s->high - s->low, TICKS);
    uint64_t v = (s->low + step - 1) / step * step;
    for (; v <= s->high; v += step) {
        double at = place(s, v);
        if (across)
            text_addf(to,
                      "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\""
                      " y=\"%d\" text-anchor=\"middle\">",
                      at, TOP, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 16);
        else
            text_addf(to,
                      "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" "
                      "y=\"%.1f\" text-anchor=\"end\">",
                      LEFT, at, WIDTH - RIGHT, LEFT - 6, at + 4);
        html_short(to, v);
        text_add(to, "</text>");
    }
}

static void titles(const Chart *c) {
    int x = (LEFT + WIDTH - RIGHT) / 2, y = (TOP + HEIGHT - BOTTOM) / 2;
    text_addf(c->to,
              "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>"
              "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
              LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT, x, HEIGHT - 8);
    html_text(c->to, c->x_title);
    text_addf(c->to,
              "</text><text x=\"14\" y=\"%d\" transform=\"rotate(-90 14 %d)\" "
              "text-anchor=\"middle\">",
              y, y);
    html_text(c->to, c->y_title);
    text_add(c->to, "</text>\n");
}

bool chart_open(Chart *c) {
    if (c->x.low > c->x.high)
        return false;
    loosen(&c->x);
    loosen(&c->y);
    text_addf(c->to,
              "<div><svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" "
              "aria-label=\"",
              WIDTH, HEIGHT, WIDTH);
    html_text(c->to, c->y_title);
    text_add(c->to, " against ");
    html_text(c->to, c->x_title);
    text_add(c->to, "\">\n");
    ticks(c->to, &c->x, true);
    ticks(c->to, &c->y, false);
    titles(c);
    return true;
}

void chart_close(Chart *c) {
    text_add(c->to, "</svg></div>\n");
}

void chart_mark(Chart *c, uint64_t x, const char *name) {
    double at = place(&c->x, x);
    if (x < c->x.low || x > c->x.high)
        return;
    text_addf(c->to,
              "<path class=\"axis\" stroke-dasharray=\"4 4\" "
              "d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
              "text-anchor=\"end\">",
              at, TOP, HEIGHT - BOTTOM, at - 4, TOP + 10);
    html_text(c->to, name);
    text_add(c->to, "</text>\n");
}
