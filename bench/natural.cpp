// The natural kernels' work with AVX-512 intrinsics, as somebody writes it who has the time: one pass over what fits the
// first cache, an exponential of its own, stores past the caches where a result is large, hints to fetch what comes next.
// Rows are a multiple of 16 long and no longer than LONGEST; inputs come in the order in which a kernel takes them.

#include <immintrin.h>
#include <math.h>
#include <stdint.h>

#include <initializer_list>

typedef __m512 V;

struct Work {
    const void *inputs[3];
    void *out;
    long m, n, threads, streams;
};

static const long LONGEST = 16384, AHEAD = 4096, BLOCK = 128;

#define KERNEL(name) extern "C" void name(const Work *w)
#define INPUT(k) ((const float *)w->inputs[k])
#define OUTPUT ((float *)w->out)

static inline V all(float x) { return _mm512_set1_ps(x); }
static inline V at(const float *p) { return _mm512_loadu_ps(p); }
static inline void fetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); }

template <class Row> static inline void rows(const Work *w, Row row) {
    const long m = w->m, threads = w->threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (long i = 0; i < m; i++) row(i);
    _mm_sfence();
}

static inline void put(float *p, V v, bool streams) {
    if (streams) _mm512_stream_ps(p, v);
    else _mm512_storeu_ps(p, v);
}

// Two versions of a loop over a row, so that neither asks again and again.
template <class Body> static inline void along(const Work *w, Body body) {
    const long n = w->n;
    if (w->streams)
        for (long j = 0; j < n; j += 16) body(j, true);
    else
        for (long j = 0; j < n; j += 16) body(j, false);
}

template <class Value, class Join> static inline V folded(long n, V start, Value value, Join join) {
    V a = start, b = start, c = start, d = start;
    long j = 0;
    for (; j + 64 <= n; j += 64) {
        a = join(a, value(j)), b = join(b, value(j + 16));
        c = join(c, value(j + 32)), d = join(d, value(j + 48));
    }
    for (; j < n; j += 16) a = join(a, value(j));
    return join(join(a, b), join(c, d));
}

template <class Value> static inline float sum(long n, Value value) {
    return _mm512_reduce_add_ps(folded(n, all(0), value, [](V x, V y) { return x + y; }));
}

static inline float largest(long n, const float *x) {
    auto value = [=](long j) { return at(x + j); };
    return _mm512_reduce_max_ps(folded(n, at(x), value, [](V a, V b) { return _mm512_max_ps(a, b); }));
}

static inline V exponential(V x) {  // within 2 units in the last place
    V n = _mm512_roundscale_ps(x * all(1.44269504f), 8);
    V r = _mm512_fnmadd_ps(n, all(1.42860677e-6f), _mm512_fnmadd_ps(n, all(0.693145752f), x));
    V p = all(1.39332e-3f);
    for (float c : {8.36332e-3f, 4.16666e-2f, 1.66666e-1f, 0.5f, 1.0f, 1.0f}) p = _mm512_fmadd_ps(p, r, all(c));
    return _mm512_scalef_ps(p, n);
}

static inline V inverse(V x) {  // one step from 14 bits
    V y = _mm512_rcp14_ps(x);
    return y * (all(2) - x * y);
}

KERNEL(add) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n, *y = INPUT(1) + i * w->n;
        float *out = OUTPUT + i * w->n;
        along(w, [=](long j, bool streams) {
            if (streams) fetch((char *)(x + j) + AHEAD), fetch((char *)(y + j) + AHEAD);
            put(out + j, at(x + j) + at(y + j), streams);
        });
    });
}

KERNEL(silu_mul) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n, *y = INPUT(1) + i * w->n;
        float *out = OUTPUT + i * w->n;
        along(w, [=](long j, bool streams) {
            if (streams) fetch((char *)(x + j) + AHEAD), fetch((char *)(y + j) + AHEAD);
            V t = at(x + j);
            put(out + j, t * inverse(all(1) + exponential(-t)) * at(y + j), streams);
        });
    });
}

KERNEL(gelu) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n, *by = INPUT(1), *more = INPUT(2);
        float *out = OUTPUT + i * w->n;
        along(w, [=](long j, bool streams) {
            if (streams) fetch((char *)(x + j) + AHEAD);
            V t = _mm512_fmadd_ps(at(x + j), at(by + j), at(more + j));
            V u = t * _mm512_fmadd_ps(t * t, all(-0.0713548162f), all(-1.59576912f));  // -2 sqrt(2 / pi) of the sum
            put(out + j, t * inverse(all(1) + exponential(_mm512_min_ps(u, all(80)))), streams);
        });
    });
}

KERNEL(softmax) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n;
        float e[LONGEST] __attribute__((aligned(64))), *out = OUTPUT + i * w->n;
        V best = all(largest(w->n, x));
        V by = all(1 / sum(w->n, [&](long j) {
            V v = exponential(at(x + j) - best);
            fetch(x + w->n + j);
            _mm512_store_ps(e + j, v);
            return v;
        }));
        along(w, [&](long j, bool streams) { put(out + j, at(e + j) * by, streams); });
    });
}

static inline float weights(const Work *w, const float *x, float best) {
    return sum(w->n, [=](long j) {
        fetch(x + w->n + j);
        return exponential(at(x + j) - all(best));
    });
}

KERNEL(log_softmax) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n, best = largest(w->n, x);
        float *out = OUTPUT + i * w->n;
        V less = all(best + logf(weights(w, x, best)));
        along(w, [=](long j, bool streams) { put(out + j, at(x + j) - less, streams); });
    });
}

KERNEL(cross_entropy) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n, best = largest(w->n, x);
        OUTPUT[i] = logf(weights(w, x, best)) + best - x[((const int *)w->inputs[1])[i]];
    });
}

KERNEL(rms_norm) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n, *scale = INPUT(1);
        float *out = OUTPUT + i * w->n;
        float squares = sum(w->n, [=](long j) { return at(x + j) * at(x + j); });
        V by = all(1 / sqrtf(squares / w->n + 1e-5f));
        along(w, [=](long j, bool streams) {
            if (streams) fetch(x + w->n + j);
            put(out + j, at(x + j) * by * at(scale + j), streams);
        });
    });
}

KERNEL(layer_norm) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n, *scale = INPUT(1), *more = INPUT(2);
        float *out = OUTPUT + i * w->n;
        V mean = all(sum(w->n, [=](long j) { return at(x + j); }) / w->n);
        float squares = sum(w->n, [=](long j) { return (at(x + j) - mean) * (at(x + j) - mean); });
        V by = all(1 / sqrtf(squares / w->n + 1e-5f));
        along(w, [=](long j, bool streams) {
            if (streams) fetch(x + w->n + j);
            put(out + j, _mm512_fmadd_ps((at(x + j) - mean) * by, at(scale + j), at(more + j)), streams);
        });
    });
}

static inline __m128i byte(V x) {
    return _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_max_ps(_mm512_min_ps(x * all(12.5f), all(127)), all(-128))));
}

KERNEL(quantize) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n;
        char *out = (char *)w->out + i * w->n;
        for (long j = 0; j < w->n; j += 64) {
            __m512i line = _mm512_castsi128_si512(byte(at(x + j)));
            for (int k = 0; w->streams && k < 64; k += 16) fetch((char *)(x + j + k) + AHEAD);
            line = _mm512_inserti32x4(line, byte(at(x + j + 16)), 1);
            line = _mm512_inserti32x4(line, byte(at(x + j + 32)), 2);
            line = _mm512_inserti32x4(line, byte(at(x + j + 48)), 3);
            if (w->streams) _mm512_stream_si512((__m512i *)(out + j), line);
            else _mm512_storeu_si512(out + j, line);
        }
    });
}

static inline __m512i halves(const float *x) {  // rounded to the nearest, ties to even; no NaN here
    __m512i bits[2];
    for (int k = 0; k < 2; k++) {
        __m512i b = _mm512_loadu_si512(x + 16 * k), one = _mm512_set1_epi32(1), most = _mm512_set1_epi32(0x7fff);
        __m512i odd = _mm512_and_si512(_mm512_srli_epi32(b, 16), one);
        bits[k] = _mm512_srli_epi32(_mm512_add_epi32(b, _mm512_add_epi32(odd, most)), 16);
    }
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(bits[0])), _mm512_cvtepi32_epi16(bits[1]), 1);
}

KERNEL(halve) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n;
        int16_t *out = (int16_t *)w->out + i * w->n;
        for (long j = 0; j < w->n; j += 32) {
            if (w->streams) fetch((char *)(x + j) + AHEAD), fetch((char *)(x + j + 16) + AHEAD);
            if (w->streams) _mm512_stream_si512((__m512i *)(out + j), halves(x + j));
            else _mm512_storeu_si512(out + j, halves(x + j));
        }
    });
}

KERNEL(dequantize) {
    rows(w, [=](long i) {
        const char *x = (const char *)w->inputs[0] + i * w->n;
        float *out = OUTPUT + i * w->n;
        V by = all(INPUT(1)[i]);
        along(w, [=](long j, bool streams) {
            if (streams && j % 64 == 0) fetch(x + j + AHEAD);
            __m128i bytes = _mm_loadu_si128((const __m128i *)(x + j));
            put(out + j, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)) * by, streams);
        });
    });
}

KERNEL(argmax) {
    rows(w, [=](long i) {
        const float *x = INPUT(0) + i * w->n;
        V best = folded(w->n, at(x), [=](long j) { return fetch((char *)(x + j) + AHEAD), at(x + j); },
                        [](V a, V b) { return _mm512_max_ps(a, b); });
        V most = all(_mm512_reduce_max_ps(best));
        long j = 0;
        __mmask16 here;
        while (!(here = _mm512_cmp_ps_mask(at(x + j), most, _CMP_EQ_OQ))) j += 16;
        ((int *)w->out)[i] = j + __builtin_ctz(here);
    });
}

KERNEL(rope) {
    const long half = w->n / 2;
    rows(w, [=](long i) {
        const float *a = INPUT(0) + i * w->n, *b = a + half, *c = INPUT(1) + i * half, *s = INPUT(2) + i * half;
        float *out = OUTPUT + i * w->n;
        const bool streams = w->streams;
        for (long j = 0; j < half; j += 16) {
            if (streams)
                for (const float *p : {a, b, c, s}) fetch((char *)(p + j) + AHEAD);
            put(out + j, _mm512_fmsub_ps(at(a + j), at(c + j), at(b + j) * at(s + j)), streams);
            put(out + half + j, _mm512_fmadd_ps(at(b + j), at(c + j), at(a + j) * at(s + j)), streams);
        }
    });
}

KERNEL(column_sums) {  // each thread has some columns, and adds 8 rows at a time to sums in the first cache
    const long n = w->n, threads = w->threads, each = (n / 16 + threads - 1) / threads * 16;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (long part = 0; part < threads; part++) {
        const long begin = part * each, end = begin + each < n ? begin + each : n;
        for (long j = begin; j < end; j += 16) _mm512_storeu_ps(OUTPUT + j, all(0));
        for (long i = 0; i < w->m; i += 8)
            for (long j = begin; j < end; j += 16) {
                V total = at(OUTPUT + j);
                for (long r = i; r < i + 8; r++) total = total + at(INPUT(0) + r * n + j);
                _mm512_storeu_ps(OUTPUT + j, total);
            }
    }
}

static inline void turn(V *v) {  // its quarters change places, then theirs, and so on
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#pragma GCC unroll 4
    for (int half = 8; half; half /= 2) {
        __mmask16 upper = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(half));
        __m512i low = _mm512_mask_add_epi32(lane, upper, lane, _mm512_set1_epi32(16 - half));
        __m512i high = _mm512_add_epi32(lane, _mm512_set1_epi32(half));
        high = _mm512_mask_add_epi32(high, upper, lane, _mm512_set1_epi32(16));
#pragma GCC unroll 16
        for (int k = 0; k < 16; k++)
            if (!(k & half)) {
                V a = v[k], b = v[k + half];
                v[k] = _mm512_permutex2var_ps(a, low, b), v[k + half] = _mm512_permutex2var_ps(a, high, b);
            }
    }
}

KERNEL(transpose) {
    const long m = w->m, n = w->n, threads = w->threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (long first = 0; first < n; first += BLOCK)  // these columns become rows, of which each block writes some lines
        for (long begin = 0; begin < m; begin += BLOCK)
            for (long j = first; j < first + BLOCK && j < n; j += 16)
                for (long i = begin; i < begin + BLOCK && i < m; i += 16) {
                    V v[16];
                    if (i + 16 > m || j + 16 > n) {
                        for (long r = i; r < m && r < i + 16; r++)
                            for (long c = j; c < n && c < j + 16; c++) OUTPUT[c * m + r] = INPUT(0)[r * n + c];
                        continue;
                    }
#pragma GCC unroll 16
                    for (int k = 0; k < 16; k++) v[k] = at(INPUT(0) + (i + k) * n + j);
                    turn(v);
#pragma GCC unroll 16
                    for (int k = 0; k < 16; k++) put(OUTPUT + (j + k) * m + i, v[k], w->streams);
                }
    _mm_sfence();
}

// As many bytes come and go as with another kernel: m and n are how many of each.
KERNEL(copy) {
    const long threads = w->threads, nin = w->m / threads / 64 * 64, nout = w->n / threads / 64 * 64;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (long part = 0; part < threads; part++) {
        const char *in = (const char *)w->inputs[0] + part * nin;
        char *out = (char *)w->out + part * nout;
        const long most = nin > nout ? nin : nout;
        __m512i every = _mm512_setzero_si512();
        long i = 0, o = 0;
        for (long done = AHEAD; i < nin || o < nout; done += AHEAD) {
            const double share = done < most ? (double)done / most : 1.0;
            for (const long end = share * nin; i + 64 <= end; i += 64) {
                fetch(in + i + AHEAD);
                every = _mm512_xor_si512(every, _mm512_loadu_si512(in + i));
            }
            for (const long end = share * nout; o + 64 <= end; o += 64) _mm512_stream_si512((__m512i *)(out + o), every);
        }
        _mm_sfence();
    }
}
