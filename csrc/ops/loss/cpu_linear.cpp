// linear_cross_entropy on the CPU: a chunk of rows is multiplied by the weights, each row of logits becomes a loss and,
// where it lies, a gradient, and that is multiplied by the weights and by the inputs. Gradients of logits are of the
// compute element, or rounded to bf16, whose products are twice as fast.
#include "ops/loss/entropy_rows.h"
#include "ops/loss/kernels.h"
#include "ops/matmul/cpu.h"

namespace baracuda::loss {
namespace {

constexpr int64_t kColumns = 512, kBlockRows = 64;  // of sums over rows

matmul::Matrix matrix(const TensorView& t) {
  const int64_t size = size_of(t.element);
  matmul::Matrix m;
  m.data = t.as<char>(), m.element = t.element;
  m.rs = t.shape[0] == 1 ? 0 : t.strides[0] * size, m.cs = t.shape[1] == 1 ? 0 : t.strides[1] * size;
  return m;
}
template <class C>
matmul::Matrix matrix(C* data, int64_t columns) {
  matmul::Matrix m;
  m.data = reinterpret_cast<char*>(data), m.element = element_of<C>;
  m.rs = columns * int64_t{sizeof(C)}, m.cs = sizeof(C);
  return m;
}
matmul::Matrix transposed(matmul::Matrix m) {
  std::swap(m.rs, m.cs);
  return m;
}

template <class Args, class C>
class Linear {
 public:
  Linear(const Launch& launch, Problems& p, Element gradient = element_of<C>)
      : gradient_(gradient),
        p_(p),
        input_(launch[Args::input]),
        weight_(launch[Args::linear_weight]),
        bias_(launch[Args::linear_bias]),
        dinput_(launch[Args::dinput]),
        dweight_(launch[Args::dlinear_weight]),
        dbias_(launch[Args::dlinear_bias]),
        features_(input_.shape[1]),
        step_(chunk_rows(p.rows, p.classes, least_chunk_rows(features_, dweight_.present()))) {
    const bool halves = kHalves.has(launch.element), reduces = kMakesLoss<Args> && p.reduction() != Reduction::None;
    const LinearParts parts =
        linear_parts({p.rows, features_, p.classes, sizeof(C), reduces, dweight_.present(), dbias_.present(), halves});
    char* next = static_cast<char*>(launch.workspace);
    auto take = [&](int64_t bytes) { return reinterpret_cast<C*>(std::exchange(next, next + bytes)); };
    losses_ = take(parts.losses), logits_ = take(parts.logits);
    C* sums = take(parts.dweight);
    dbias_sums_ = take(parts.dbias);
    products_ = next;
    const bool beside = halves && p.rows > step_;
    if (dweight_.present()) dweight_sums_ = beside ? matrix(sums, features_) : matrix(dweight_);
    p_.logits = rows_of_chunk(element_of<C>), p_.dlogits = rows_of_chunk(gradient);
  }

  // row(r) turns row r of the logits into what the gradients are made of.
  template <class Row>
  void run(Row&& row) {
    for (int64_t at = 0; at < p_.rows; at += step_) {
      const int64_t n = std::min(step_, p_.rows - at);
      p_.first = at;
      multiply(n, p_.classes, features_, rows_from(input_, at), transposed(matrix(weight_)),
               matrix(logits_, p_.classes), false, bias_.present() ? &bias_ : nullptr);
      parallel_for(n, row_grain(p_.classes), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) row(at + r);
      });
      gradients(at, n);
    }
    if (p_.rows == 0) clear_sums();
    store_sums();
  }
  C* losses() const { return losses_; }
  // Where a row's exponentials are kept: over its logits, of which a gradient in bf16 takes the first half later.
  C* kept(int64_t r) const { return reinterpret_cast<C*>(p_.logits_row(r)); }

 private:
  RowMap rows_of_chunk(Element element) const {
    RowMap m;
    m.data = reinterpret_cast<char*>(logits_), m.element = element;
    m.outer.push(step_, p_.classes * int64_t{sizeof(C)} / size_of(element)), m.inner.push(p_.classes, 1);
    return m;
  }
  static matmul::Matrix rows_from(const TensorView& t, int64_t row) {
    matmul::Matrix m = matrix(t);
    m.data += row * m.rs;
    return m;
  }

  void multiply(int64_t m, int64_t n, int64_t k, const matmul::Matrix& a, const matmul::Matrix& b,
                const matmul::Matrix& d, bool add, const TensorView* bias = nullptr) const {
    if (m == 0 || n == 0) return;
    matmul::Gemm g;
    g.m = m, g.n = n, g.k = k, g.a = a, g.b = b, g.d = d;
    if (add) g.c = d, g.beta = 1;
    if (bias) {
      g.bias.data = bias->as<char>(), g.bias.element = bias->element;
      g.bias.cs = bias->shape[0] == 1 ? 0 : bias->strides[0] * size_of(bias->element);
    }
    const bool both_bf16 = a.element == Element::BF16 && b.element == Element::BF16;
    both_bf16 ? matmul::run_bf16(g, products_) : matmul::run_packed(g, products_);
  }

  void gradients(int64_t at, int64_t n) {
    matmul::Matrix dlogits = matrix(logits_, p_.classes);
    dlogits.element = gradient_, dlogits.cs = size_of(gradient_);
    if (dinput_.present()) multiply(n, features_, p_.classes, dlogits, matrix(weight_), rows_from(dinput_, at), false);
    if (dweight_.present())
      multiply(p_.classes, features_, n, transposed(dlogits), rows_from(input_, at), dweight_sums_, at > 0);
    if (dbias_.present()) add_rows(n, at > 0);
  }

  // The sum of the chunk's gradients, in blocks of rows.
  void add_rows(int64_t n, bool add) const {
    parallel_for(p_.classes, kColumns, [&](int64_t begin, int64_t end) {
      C block[kColumns], row[kColumns];
      for (int64_t first = 0; first < n; first += kBlockRows) {
        std::fill(block, block + (end - begin), C(0));
        for (int64_t r = first; r < std::min(n, first + kBlockRows); ++r) {
          const C* d = read(p_.dlogits, p_.dlogits.row(r), begin, end - begin, row);
#pragma GCC ivdep
          for (int64_t i = 0; i < end - begin; ++i) block[i] += d[i];
        }
        C* to = dbias_sums_ + begin;
        if (!add && first == 0) std::fill(to, to + (end - begin), C(0));
#pragma GCC ivdep
        for (int64_t i = 0; i < end - begin; ++i) to[i] += block[i];
      }
    });
  }

  void clear_sums() const {
    if (dweight_.present()) multiply(p_.classes, features_, 0, dweight_sums_, dweight_sums_, dweight_sums_, false);
    if (dbias_.present()) std::fill(dbias_sums_, dbias_sums_ + p_.classes, C(0));
  }
  // Sums that were kept beside their tensors, rounded.
  void store_sums() const {
    if (dbias_.present())
      storer<C>(dbias_.element)(dbias_.as<char>(), dbias_.shape[0] == 1 ? 1 : dbias_.strides[0], dbias_sums_,
                                p_.classes);
    if (!dweight_.present() || dweight_sums_.data == dweight_.as<char>()) return;
    const matmul::Matrix to = matrix(dweight_);
    const StoreFn<C> store_row = storer<C>(to.element);
    const int64_t stride = features_ == 1 ? 1 : to.cs / size_of(to.element);
    parallel_for(p_.classes, row_grain(features_), [&](int64_t begin, int64_t end) {
      for (int64_t v = begin; v < end; ++v)
        store_row(to.at(v, 0), stride, reinterpret_cast<const C*>(dweight_sums_.at(v, 0)), features_);
    });
  }

  const Element gradient_;  // of the logits, as products take it
  Problems& p_;
  const TensorView &input_, &weight_, &bias_, &dinput_, &dweight_, &dbias_;
  int64_t features_, step_;
  C *losses_, *logits_, *dbias_sums_;
  matmul::Matrix dweight_sums_;
  void* products_;
};

// The chunk's rows are its logits' only when a chunk has been made; sizes come from the other tensors.
template <class Args>
Problems problem_of(const Launch& launch) {
  Places at{.input = Args::input,
            .target = Args::target,
            .weight = Args::weight,
            .lse = Args::lse,
            .smoothing = Args::label_smoothing};
  if constexpr (kMakesLoss<Args>)
    at.loss = Args::loss;
  else
    at.dloss = Args::dloss;
  Problems p(launch, at);
  p.classes = launch[Args::linear_weight].shape[0];
  return p;
}

Status forward(const Launch& launch, Element gradient) {
  using Args = LinearArgs;
  Problems p = problem_of<Args>(launch);
  const bool wanted =
      launch[Args::dinput].present() || launch[Args::dlinear_weight].present() || launch[Args::dlinear_bias].present();
  const double dloss = launch.scalars[Args::dloss].as_f64();
  return p.run(launch, [&](auto c) {
    using C = decltype(c);
    Linear<Args, C> layer(launch, p, gradient);
    const C share = static_cast<C>(dloss) / (p.reduction() == Reduction::Mean ? static_cast<C>(p.counted) : C(1));
    layer.run([&](int64_t r) {
      if (wanted) return fused_row<C>(p, r, share, layer.losses(), layer.kept(r));
      const int64_t t = p.counted_target(r);
      put_loss(p, r, t, row_terms<C>(p, p.logits_row(r), t, nullptr), layer.losses());
    });
    reduce_losses(p, layer.losses());
  });
}

Status backward(const Launch& launch, Element gradient) {
  Problems p = problem_of<LinearBackwardArgs>(launch);
  return p.run(launch, [&](auto c) {
    using C = decltype(c);
    Linear<LinearBackwardArgs, C>(launch, p, gradient).run([&](int64_t r) {
      const int64_t t = p.counted_target(r);
      if (t < 0)
        clear_row<C>(p, r);
      else
        gradient_row<false, C>(p, r, t, nullptr, get<C>(p.lse, r), row_gradient(p, t, p.share_of<C>(r), C(1)));
    });
  });
}

}  // namespace
}  // namespace baracuda::loss

namespace baracuda {

Status CpuKernel<loss::LinearCrossEntropy>::run(const Launch& launch) {
  return loss::forward(launch, compute_element(launch.element));
}
Status CpuKernel<loss::LinearCrossEntropyRounded>::run(const Launch& launch) {
  return loss::forward(launch, Element::BF16);
}
Status CpuKernel<loss::LinearCrossEntropyBackward>::run(const Launch& launch) {
  return loss::backward(launch, compute_element(launch.element));
}
Status CpuKernel<loss::LinearCrossEntropyRoundedBackward>::run(const Launch& launch) {
  return loss::backward(launch, Element::BF16);
}

}  // namespace baracuda
