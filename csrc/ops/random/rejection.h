// Gamma, beta, Poisson and binomial numbers. Each element makes as many tries as it needs, from blocks of its own;
// which one is taken depends on logarithms, so that two backends may differ where a comparison is decided by rounding.
#pragma once
#include "baracuda/math/math.h"
#include "ops/random/discrete.h"

namespace baracuda::random {

template <class C>
BCU_FN C whole_of(C v) {
  C whole = math::rint(v);
  return whole > v ? whole - C(1) : whole;
}

// The blocks of an element: the counter of block_of() with their number in the third word, and in the fourth which of
// the element's numbers they are for.
struct Tries {
  uint64_t seed, counter;
  uint32_t number, next;
};
BCU_FN Words next_words(BCU_THREAD Tries& t) {
  Words at;
  at.x = uint32_t(t.counter), at.y = uint32_t(t.counter >> 32), at.z = t.next++, at.w = t.number;
  return philox(at, uint32_t(t.seed), uint32_t(t.seed >> 32));
}

// -ln(u), u = (bits + 1/2) / 2^32 (f64: of the upper 53 of 64 bits), with all its digits at either end.
BCU_FN float exponential(uint32_t w) {
  float low = (float(w) + 0.5f) * 2.3283064365386962890625e-10f;
  float high = (float(~w) + 0.5f) * 2.3283064365386962890625e-10f;
  return w < 0x80000000u ? -math::log(low) : -math::log1p(-high);
}
// Half of a unit wide: 1/2 - |u| and u, uniform on (-1/2, 1/2); and a uniform number on (0, 1].
template <class C>
struct Hat {
  C edge, u, v;
};
BCU_FN Hat<float> hat(uint32_t w, uint32_t v) {
  Hat<float> h;
  h.edge = (float(w & 0x7fffffffu) + 0.5f) * 2.3283064365386962890625e-10f;
  h.u = (w & 0x80000000u) != 0u ? h.edge - 0.5f : 0.5f - h.edge;
  h.v = (float(v) + 0.5f) * 2.3283064365386962890625e-10f;
  return h;
}

// What a try of each kind is made of.
template <class C>
struct GammaTry {
  C z, u, exponential;
};
template <class C>
struct Trial;
template <>
struct Trial<float> {
  enum : int { kExponentials = 4 };
  BCU_FN void exponentials(BCU_THREAD Tries& t, BCU_THREAD float* to) {
    Words w = next_words(t);
    to[0] = exponential(w.x), to[1] = exponential(w.y), to[2] = exponential(w.z), to[3] = exponential(w.w);
  }
  BCU_FN Hat<float> of_hat(BCU_THREAD Tries& t) {
    Words w = next_words(t);
    return hat(w.x, w.y);
  }
  BCU_FN GammaTry<float> of_gamma(BCU_THREAD Tries& t) {
    Words w = next_words(t);
    GammaTry<float> g;
    g.z = normals(w.x, w.y).first, g.u = hat(w.x, w.z).v, g.exponential = exponential(w.w);
    return g;
  }
};
#if BCU_HAS_F64
BCU_FN double exponential(uint64_t w) {
  double low = (double(w >> 11) + 0.5) * 0x1p-53, high = (double(~w >> 11) + 0.5) * 0x1p-53;
  return (w >> 63) == 0 ? -math::log(low) : -math::log1p(-high);
}
BCU_FN Hat<double> hat(uint64_t w, uint64_t v) {
  Hat<double> h;
  h.edge = (double(w << 1 >> 11) + 0.5) * 0x1p-54;
  h.u = (w >> 63) != 0 ? h.edge - 0.5 : 0.5 - h.edge;
  h.v = (double(v >> 11) + 0.5) * 0x1p-53;
  return h;
}
template <>
struct Trial<double> {
  enum : int { kExponentials = 2 };
  BCU_FN void exponentials(BCU_THREAD Tries& t, BCU_THREAD double* to) {
    Words w = next_words(t);
    to[0] = exponential(wide_word(w, false)), to[1] = exponential(wide_word(w, true));
  }
  BCU_FN Hat<double> of_hat(BCU_THREAD Tries& t) {
    Words w = next_words(t);
    return hat(wide_word(w, false), wide_word(w, true));
  }
  BCU_FN GammaTry<double> of_gamma(BCU_THREAD Tries& t) {
    Words w = next_words(t), more = next_words(t);
    GammaTry<double> g;
    g.z = normals(w).first, g.u = hat(uint64_t(0), wide_word(more, false)).v;
    g.exponential = exponential(wide_word(more, true));
    return g;
  }
};
#endif

// ln(1 + x) - x + x^2/2 - x^3/3, without what cancels.
template <class C>
BCU_FN C log_rest(C x) {
  if (x > C(0.125) || x < C(-0.125)) return math::log1p(x) - x * (C(1) - x * (C(0.5) - x / C(3)));
  C s = C(0);
  for (int j = 19; j >= 4; --j) s = C(1) / C(j) - x * s;
  return -(x * x) * (x * x) * s;
}

// A number of the gamma distribution (Marsaglia and Tsang, 2000): value e^-less. Below 1, `shape` is raised by 1, and
// the result is multiplied by u^(1 / shape).
template <class C>
struct Gamma {
  C value, less;
};
template <class C>
BCU_FN Gamma<C> gamma(C shape, BCU_THREAD Tries& t) {
  Gamma<C> found;
  found.value = C(0), found.less = C(0);
  if (!(shape > C(0) && shape - shape == C(0))) return found;
  bool raised = shape < C(1);
  C d = (raised ? shape + C(1) : shape) - C(1) / C(3), c = C(1) / (C(3) * math::sqrt(d));
  for (;;) {
    GammaTry<C> g = Trial<C>::of_gamma(t);
    C x = c * g.z, root = C(1) + x, square = g.z * g.z;
    if (!(root > C(0))) continue;
    if (!(g.u < C(1) - C(0.0331) * (square * square)) && !(math::log(g.u) < C(3) * d * log_rest(x))) continue;
    found.value = d * (root * root * root);
    if (raised) found.less = g.exponential / shape;
    return found;
  }
}

// ln k! - ((k + 1/2) ln k - k + ln(2 pi) / 2), k >= 1.
template <class C>
BCU_FN C stirling_rest(C k) {
  if (k < C(16)) return math::lgamma(k + C(1)) - ((k + C(0.5)) * math::log(k) - k + C(0.91893853320467274178));
  C r = C(1) / k, s = r * r;
  return r * (C(1) / C(12) - s * (C(1) / C(360) - s * (C(1) / C(1260) - s * (C(1) / C(1680)))));
}
// k ln(k / mean) + mean - k (Loader, 2000).
template <class C>
BCU_FN C deviance(C k, C mean) {
  C more = k - mean, v = more / (k + mean);
  if (v > C(0.1) || v < C(-0.1)) return k * math::log(k / mean) - more;
  C square = v * v, sum = C(0);
  for (int j = 8; j >= 1; --j) sum = square * (C(1) / C(2 * j + 1) + sum);
  return more * v + C(2) * k * v * sum;
}
template <class C>
BCU_FN C log_poisson(C k, C mean) {
  if (k < C(1)) return -mean;
  return -stirling_rest(k) - deviance(k, mean) - C(0.5) * math::log(C(6.28318530717958647693) * k);
}
template <class C>
BCU_FN C log_binomial(C k, C n, C p) {
  if (k < C(1)) return n * math::log1p(-p);
  if (k >= n) return n * math::log(p);
  C rest = n - k, roots = math::log(n / k) - math::log(C(6.28318530717958647693) * rest);
  return stirling_rest(n) - stirling_rest(k) - stirling_rest(rest) - deviance(k, n * p) -
         deviance(rest, n * (C(1) - p)) + C(0.5) * roots;
}

// How many exponential gaps fit into [0, most]; or, in whole numbers of `unit` each, one at least, into [1, most].
template <bool kWhole, class C>
BCU_FN C arrivals(C most, C unit, BCU_THREAD Tries& t) {
  C sum = C(0), gap[Trial<C>::kExponentials];
  for (C k = C(0);;) {
    Trial<C>::exponentials(t, gap);
    for (int j = 0; j < Trial<C>::kExponentials; ++j) {
      sum += kWhole ? whole_of(gap[j] / unit) + C(1) : gap[j];
      if (sum > most) return k;
      k += C(1);
    }
  }
}

// Of the Poisson distribution: PTRS (Hormann, 1993) from a mean of 10 on. Candidates are counted from the whole part of
// the mean.
template <class C>
BCU_FN C poisson(C mean, BCU_THREAD Tries& t) {
  if (!(mean >= C(0) && mean - mean == C(0))) return C(0);
  if (mean < C(10)) return arrivals<false>(mean, C(1), t);
  C b = C(0.931) + C(2.53) * math::sqrt(mean), a = C(-0.059) + C(0.02483) * b;
  C scale = C(1.1239) + C(1.1328) / (b - C(3.4)), inner = C(0.9277) - C(3.6224) / (b - C(2));
  C whole = whole_of(mean), part = mean - whole;
  for (;;) {
    Hat<C> h = Trial<C>::of_hat(t);
    C k = whole + whole_of((C(2) * a / h.edge + b) * h.u + (part + C(0.43)));
    if (k < C(0)) continue;
    if (h.edge >= C(0.07) && h.v <= inner) return k;
    if (math::log(h.v * scale / (a / (h.edge * h.edge) + b)) <= log_poisson(k, mean)) return k;
  }
}

// Of the binomial distribution of whole n: BTRS (Hormann, 1993) from a mean of 10 on; by the likelier of both outcomes.
template <class C>
BCU_FN C binomial(C n, C chance, BCU_THREAD Tries& t) {
  n = whole_of(n);
  if (!(n > C(0) && n - n == C(0) && chance > C(0))) return C(0);
  if (chance >= C(1)) return n;
  bool other = chance > C(0.5);
  C p = other ? C(1) - chance : chance, mean = n * p;
  if (mean < C(10)) {
    C k = arrivals<true>(n, -math::log1p(-p), t);
    return other ? n - k : k;
  }
  C deviation = math::sqrt(mean * (C(1) - p)), b = C(1.15) + C(2.53) * deviation;
  C a = C(-0.0873) + C(0.0248) * b + C(0.01) * p, inner = C(0.92) - C(4.2) / b;
  C scale = (C(2.83) + C(5.1) / b) * deviation, whole = whole_of(mean), part = mean - whole;
  C top = log_binomial(whole_of(mean + p), n, p);
  for (;;) {
    Hat<C> h = Trial<C>::of_hat(t);
    C k = whole + whole_of((C(2) * a / h.edge + b) * h.u + (part + C(0.5)));
    if (k < C(0) || k > n) continue;
    if (!(h.edge >= C(0.07) && h.v <= inner) &&
        !(math::log(h.v * scale / (a / (h.edge * h.edge) + b)) <= log_binomial(k, n, p) - top))
      continue;
    return other ? n - k : k;
  }
}

// What the ops draw for element `at`; kUnits: a bit for each input that is a probability.
struct GammaDraw {
  enum : int { kInputs = 1, kUnits = 0 };
  template <class C>
  BCU_FN C of(BCU_THREAD const C* in, BCU_THREAD Tries& t) {
    Gamma<C> g = gamma(in[0], t);
    return g.value * math::exp(-g.less);
  }
};
struct BetaDraw {
  enum : int { kInputs = 2, kUnits = 0 };
  template <class C>
  BCU_FN C of(BCU_THREAD const C* in, BCU_THREAD Tries& t) {
    // Of two as small the result is 0 or 1 by their ratio; unscaled, both exponents overflow.
    C scale = in[0] < C(1e-37) && in[1] < C(1e-37) ? C(1208925819614629174706176.0) : C(1);
    Gamma<C> x = gamma(in[0] * scale, t);
    t.number = 1u, t.next = 0u;
    Gamma<C> y = gamma(in[1] * scale, t);
    return C(1) / (C(1) + math::exp((math::log(y.value) - math::log(x.value)) + (x.less - y.less)));
  }
};
struct PoissonDraw {
  enum : int { kInputs = 1, kUnits = 0 };
  template <class C>
  BCU_FN C of(BCU_THREAD const C* in, BCU_THREAD Tries& t) {
    return poisson(in[0], t);
  }
};
struct BinomialDraw {
  enum : int { kInputs = 2, kUnits = 2 };
  template <class C>
  BCU_FN C of(BCU_THREAD const C* in, BCU_THREAD Tries& t) {
    return binomial(in[0], in[1], t);
  }
};

template <class C>
BCU_FN bool takes(C v, bool unit) {
  return v >= C(0) && (unit ? v <= C(1) : v - v == C(0));
}

}  // namespace baracuda::random
