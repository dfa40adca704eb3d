// SPDX-License-Identifier: Apache-2.0
// The gradient of max pooling, gathered: every cell looks at the windows over it and takes the gradient of those whose
// match it is. The matches of the planes of windows that are in reach are kept as codes (positions in the window) in a
// ring in scratch memory. Where no windows overlap, one pass does it all without codes.
#pragma once

#include "pool_match.hpp"

namespace VG_NAMESPACE::pool {

// 16-bit elements have no room beside them for codes of more than 8 bits: they are then compared as floats.
template <class S, class Code>
struct Compared {
    static constexpr bool widened = is_half<S> && sizeof(Code) > 1;
    using T = std::conditional_t<widened, float, lane<S>>;
    using Goal = Target<std::conditional_t<widened, float, S>>;
    template <class Part>
    static vec<T> get(const S *p, Part part) {
        if constexpr (widened) {
            return VG_NAMESPACE::pool::get(p, part);
        } else {
            return get_raw(p, part);
        }
    }
};

template <class S, class Code>
void codes_of_match(const Taps &taps, const S *x, const S *y, Code *codes, int64_t length) {
    using As = Compared<S, Code>;
    using T = typename As::T;
    using K = code_lane<T>;
    constexpr int L = lanes<T>;
    each_group<L, sizeof(Code) == 1 ? 4 : 1>(length, [&](int64_t i, auto count, auto part) {
        constexpr int n = decltype(count)::value;
        [&]<int... v>(std::integer_sequence<int, v...>) {
            const typename As::Goal goal[n] = {typename As::Goal(As::get(y + i + v * L, part))...};
            const int64_t from[n] = {taps.stride.at(i + v * L)...};
            vec<K> found[n] = {(static_cast<void>(v), ~vec<K>{})...};
            taps.backwards([&](int64_t at, int64_t code) {
                const vec<K> here = all_lanes<K>(static_cast<K>(code));
                ((found[v] = choose<K>(goal[v].match(As::get(x + at + from[v], part)), here, found[v])), ...);
            });
            (put_codes<T>(codes + i + v * L, found[v], part), ...);
        }(std::make_integer_sequence<int, n>{});
    });
}

// Who takes a window's gradient: the cell whose position the code names ...
template <class S, class Code>
struct ByCode {
    using Key = Code;
    static constexpr bool coded = true;
    static Code nobody() { return static_cast<Code>(~Code{}); }
    template <class Part>
    static mask<sum_t<S>> takes(const Code *key, int64_t code, vec<sum_t<S>>, Part part) {
        return codes_are<sum_t<S>, Code>(key, static_cast<Code>(code), part);
    }
};
// ... or every cell near the output: difference and bound rounded to the storage type, as TensorFlow's CPU kernel has it.
template <class S>
struct ByNearness {
    using Key = S;
    static constexpr bool coded = false;
    static S nobody() { return no_number<S>(); }
    template <class Part>
    static mask<sum_t<S>> takes(const S *y, int64_t, vec<sum_t<S>> x, Part part) {
        using A = sum_t<S>;
        vec<A> difference = x - get(y, part);
        S bound;
        narrow(static_cast<A>(1e-5), &bound);
        if constexpr (is_half<S>) {
            S rounded[lanes<A>];
            put(rounded, difference, All{});
            difference = get(rounded, All{});
        }
        difference = difference < vec<A>{} ? -difference : difference;
        return less<A>(difference, splat<A>(widen(bound)));
    }
};

// How a gradient is gathered: the ring and the blocks.
struct GatherPlan {
    Volume v;
    Reach D, H, W;  // from cells to the windows over them
    int64_t C;
    bool ringed;      // keys come through the ring, rather than from where they lie
    int64_t planes;   // of windows in the ring
    int64_t heights;  // rows of a plane
    int64_t row;      // elements of a row
    int64_t visits;   // windows over one cell, at most
    int64_t bytes;    // of scratch memory per thread
    int32_t threads;
    Blocks blocks;
    static constexpr int64_t kRingBytes = 1 << 19;
    static constexpr int64_t kVisitBytes = 24;

    GatherPlan(const vg_pool *p, bool keys_given, int64_t key_bytes, int64_t value_bytes, int lane_count, int32_t wanted)
        : v(p, lane_count), D(windows_of(p->axis[0])), H(windows_of(p->axis[1])), W(windows_of(p->axis[2])),
          C(p->channels), ringed(v.flat || !keys_given), planes(at_least_one(D.longest())), heights(0) {
        threads = useful_threads(p->batch * D.count * H.count * W.count * C, wanted);
        blocks = {p->batch, D.count, H.count, C, at_least_one(D.count), at_least_one(H.count), at_least_one(C)};
        if (ringed && !v.flat && v.W.count * C > kRingBytes / 16)
            blocks.channels = std::min(C, at_least_one(kRingBytes / 16 / at_least_one(v.W.count) / 64) * 64);
        row = ((v.flat ? (W.count + v.comb.taps) * C : v.W.count * blocks.channels) + 127) / 64 * 64;
        const double windows_per_cell = static_cast<double>(v.H.count) / static_cast<double>(at_least_one(H.count));
        const int64_t height_bytes = planes * row * (key_bytes + (v.flat ? value_bytes : 0));
        blocks.limit_heights(kRingBytes / (static_cast<double>(height_bytes) * std::max(windows_per_cell, 1e-3)));
        blocks.refine(threads * 4, planes > 1);
        for (int64_t h = 0; h < H.count; h += blocks.heights)
            heights = std::max(heights, H.at(Range{h, std::min(H.count, h + blocks.heights)}).size());
        visits = at_least_one(D.longest() * H.longest() * (v.flat ? v.comb.taps : W.longest()));
        const int64_t ring = planes * heights * row;
        bytes = visits * kVisitBytes + (ringed ? ring * key_bytes : 0) + (v.flat ? (ring + row) * value_bytes : 0);
        bytes = (bytes + 4 * 64) / 64 * 64;
    }
};

template <class S, class By>
class MaxGrad {
    using A = sum_t<S>;
    using Key = typename By::Key;
    static constexpr int L = lanes<A>;

public:
    static GatherPlan plan(const vg_pool *p, bool keys_given, int32_t threads) {
        return GatherPlan(p, keys_given || !By::coded, sizeof(Key), sizeof(S), L, threads);
    }

    // Either x and y, from which the keys are made, or the keys; nearness needs x as well.
    struct Arrays {
        const S *x, *y;
        const Key *keys;
        const S *dy;
        S *dx;
    };
    MaxGrad(const GatherPlan &plan, const Arrays &arrays, int64_t batch, const vg_run *run)
        : plan_(plan), v(plan.v), D(plan.D), H(plan.H), W(plan.W), C(plan.C), data(arrays), run_(run) {
        const int64_t unit = (v.flat ? W.count * C : C) * static_cast<int64_t>(sizeof(S));
        past_ = goes_past(data.dx, batch * D.count * H.count * W.count * C * static_cast<int64_t>(sizeof(S)), unit);
    }

    void block(const Blocks::Block &b, char *memory) const {
        const Ring ring = make_ring(b, memory);
        int64_t next = 0;  // the first plane of windows that is not in the ring
        for (int64_t d = b.depth.lo; d < b.depth.hi; ++d) {
            const Range rd = D.at(d);
            if (plan_.ringed)
                for (int64_t od = std::max(next, rd.lo); od < rd.hi; ++od)
                    for (int64_t oh = ring.heights.lo; oh < ring.heights.hi && !cancelled(run_); ++oh) enter(ring, od, oh);
            next = std::max(next, rd.hi);
            for (int64_t h = b.height.lo; h < b.height.hi && !cancelled(run_); ++h) gather_row(ring, d, h);
        }
        if (past_) end_of_puts_past();
    }

private:
    // A window over the cells in hand (or, for a run of cells, the first of a run of windows): its key and its gradient,
    // and the code that its key has if these cells are its match.
    struct Visit {
        const Key *key;
        const S *dy;
        int64_t code;
    };
    static_assert(sizeof(Visit) == GatherPlan::kVisitBytes);

    struct Ring {
        Visit *visits;
        Key *keys;
        S *dy, *spare;
        Range heights, channel;
        int64_t image;
    };

    Ring make_ring(const Blocks::Block &b, char *memory) const {
        const auto take = [&](int64_t bytes) {
            char *from = memory;
            memory += (bytes + 63) / 64 * 64;
            return from;
        };
        Ring ring{};
        ring.heights = H.at(b.height), ring.channel = b.channel, ring.image = b.image;
        ring.visits = reinterpret_cast<Visit *>(take(plan_.visits * static_cast<int64_t>(sizeof(Visit))));
        const int64_t all = plan_.planes * plan_.heights * plan_.row;
        if (plan_.ringed) ring.keys = reinterpret_cast<Key *>(take(all * static_cast<int64_t>(sizeof(Key))));
        if (v.flat) {
            ring.dy = reinterpret_cast<S *>(take(all * static_cast<int64_t>(sizeof(S))));
            ring.spare = reinterpret_cast<S *>(take(plan_.row * static_cast<int64_t>(sizeof(S))));
            std::fill_n(ring.keys, all, By::nobody());
            std::fill_n(ring.dy, all, S{});
            std::fill_n(ring.spare, plan_.row, no_number<S>());
        }
        return ring;
    }

    int64_t in_ring(const Ring &ring, int64_t od, int64_t oh) const {
        return (od % plan_.planes * plan_.heights + oh - ring.heights.lo) * plan_.row;
    }
    // Flat rows have a place for every start of a window that reaches the volume.
    int64_t place(int64_t ow) const { return (v.comb.at(ow) + v.comb.taps - 1) * C; }

    // Brings a row of windows into the ring.
    void enter(const Ring &ring, int64_t od, int64_t oh) const {
        const int64_t o = v.window(ring.image, od, oh, 0), at = in_ring(ring, od, oh);
        if (v.flat) {
            const Range reaching = W.at(Range{0, W.count});
            if (reaching.size() == 0) return;
            const int64_t from = o + reaching.lo * C, to = at + place(reaching.lo);
            space_out(data.dy + from, ring.dy + to, reaching.size(), v.comb.step, C, S{});
            if constexpr (!By::coded)
                return space_out(data.y + from, ring.keys + to, reaching.size(), v.comb.step, C, By::nobody());
        }
        if constexpr (By::coded) {
            if (data.keys) return enter_given(ring.keys + at, data.keys + o);
            constexpr int lane_count = lanes<typename Compared<S, Key>::T>;
            const auto find = [&](Taps taps, int64_t ow, int64_t length, bool many) {
                if (taps.w == 0) return;
                if (v.flat) taps.pitch = v.comb.taps, taps.shift = std::max<int64_t>(0, -v.comb.at(ow));
                const S *y = data.y + o + ow * C + ring.channel.lo;
                if (many && v.flat && v.comb.step > 1) {
                    space_out(y, ring.spare, v.inner.size(), v.comb.step, C, no_number<S>());
                    y = ring.spare;
                }
                Key *codes = ring.keys + at + (v.flat ? place(ow) : ow * ring.channel.size());
                codes_of_match(taps, data.x, y, codes, length);
            };
            each_run(v, ring.image, od, oh, ring.channel, lane_count, find);
        }
    }
    // Given codes count the cells that exist; in a flat row they must count all, also for windows cut at the ends.
    void enter_given(Key *to, const Key *from) const {
        for (int64_t ow = 0; ow < v.W.count; ++ow) {
            const Range w = v.W.at(ow);
            if (w.size() == 0) continue;
            if (ow == v.inner.lo && v.inner.size() > 0) {
                space_out(from + ow * C, to + place(ow), v.inner.size(), v.comb.step, C, By::nobody());
                ow = v.inner.hi - 1;
                continue;
            }
            const int64_t missing = std::max<int64_t>(0, -v.comb.at(ow));
            for (int64_t c = 0; c < C; ++c) {
                const Key code = from[ow * C + c];
                const int64_t counted = code / w.size() * v.comb.taps + missing + code % w.size();
                to[place(ow) + c] = code == By::nobody() ? code : static_cast<Key>(counted);
            }
        }
    }

    // All windows over the row (d, h) that the cells in hand have the same way: window `ow` along the width, in which
    // they come `shift` cells after the first of `pitch`.
    int64_t visit_rows(const Ring &ring, int64_t count, int64_t d, int64_t h, int64_t ow, int64_t pitch, int64_t shift) const {
        const Range rd = D.at(d), rh = H.at(h);
        const Key *given = By::coded ? data.keys : reinterpret_cast<const Key *>(data.y);
        for (int64_t od = rd.lo; od < rd.hi; ++od)
            for (int64_t oh = rh.lo; oh < rh.hi; ++oh) {
                const int64_t o = v.window(ring.image, od, oh, ow) + ring.channel.lo;
                const int64_t at = plan_.ringed ? in_ring(ring, od, oh) : 0;
                const Range cells = v.H.at(oh);
                const int64_t number = (d - v.D.at(od).lo) * cells.size() + h - cells.lo;
                ring.visits[count++] = {plan_.ringed ? ring.keys + at + ow * ring.channel.size() : given + o,
                                        v.flat ? ring.dy + at + ow * C : data.dy + o, number * pitch + shift};
            }
        return count;
    }

    void gather_row(const Ring &ring, int64_t d, int64_t h) const {
        const int64_t row = v.cell(ring.image, d, h, 0) + ring.channel.lo, taps = v.comb.taps, step = v.comb.step;
        int64_t count = 0;
        if (v.flat) {
            for (int64_t j = 0; j < taps; ++j) count = visit_rows(ring, count, d, h, j, taps, taps - 1 - j);
            return gather_run(ring, count, row, W.count * C, {});
        }
        // Cells under inner windows only: those at the same place between two starts have the same windows, moved along.
        const int64_t over = taps ? pieces(taps, step) : 0;
        Range inner{v.inner.lo + over - 1, v.inner.hi};
        while (inner.size() > 0 && v.comb.at(inner.hi) > W.count) --inner.hi;
        const bool together = v.runs(L, ring.channel) && inner.size() > 0;
        for (int64_t phase = 0; together && phase < step; ++phase) {
            const int64_t windows = phase < taps ? (taps - phase - 1) / step : -1;
            count = 0;
            for (int64_t j = windows; j >= 0; --j)
                count = visit_rows(ring, count, d, h, inner.lo - j, taps, phase + j * step);
            gather_run(ring, count, row + (v.comb.at(inner.lo) + phase) * C, inner.size() * C, v.stride());
        }
        for (int64_t w = 0; w < W.count; ++w) {
            if (together && w == v.comb.at(inner.lo)) w = v.comb.at(inner.hi);
            if (w >= W.count) return;
            count = 0;
            const Range windows = W.at(w);
            for (int64_t ow = windows.lo; ow < windows.hi; ++ow) {
                const Range cells = v.W.at(ow);
                count = visit_rows(ring, count, d, h, ow, cells.size(), w - cells.lo);
            }
            gather_run(ring, count, row + w * C, ring.channel.size(), {});
        }
    }

    void gather_run(const Ring &ring, int64_t count, int64_t at, int64_t length, Stride stride) const {
        const Visit *visits = ring.visits;
        each_group<L, By::coded && sizeof(Key) == 1 ? 4 : 1>(length, [&](int64_t i, auto group, auto part) {
            constexpr int n = decltype(group)::value;
            [&]<int... k>(std::integer_sequence<int, k...>) {
                const int64_t to[n] = {at + stride.at(i + k * L)...};
                vec<A> sum[n] = {}, x[n] = {};
                if constexpr (!By::coded) ((x[k] = get(data.x + to[k], part)), ...);
                for (int64_t r = 0; r < count; ++r) {
                    const Visit one = visits[r];
                    ((sum[k] = add_where<A>(By::takes(one.key + i + k * L, one.code, x[k], part), sum[k],
                                            get(one.dy + i + k * L, part))),
                     ...);
                }
                (write(data.dx + to[k], sum[k], part), ...);
            }(std::make_integer_sequence<int, n>{});
        });
    }
    template <class Part>
    void write(S *out, vec<A> value, Part part) const {
        if constexpr (__is_same(Part, All))
            if (past_) return put_past(out, value);
        put(out, value, part);
    }

    const GatherPlan &plan_;
    const Volume &v;
    const Reach D, H, W;
    const int64_t C;
    const Arrays data;
    const vg_run *run_;
    bool past_;  // write around the caches
};

// ---- no overlap: every cell is in one window at most ----

// The gradient of the cells of windows: the first match takes dy, all other cells get zero.
template <class S>
void first_match_takes(const Taps &taps, const S *x, const S *y, const S *dy, S *dx, int64_t length, bool past) {
    using T = lane<S>;
    constexpr int L = lanes<T>;
    each_group<L>(length, [&](int64_t i, auto group, auto part) {
        constexpr int n = decltype(group)::value;
        [&]<int... k>(std::integer_sequence<int, k...>) {
            const Target<S> goal[n] = {Target<S>(get_raw(y + i + k * L, part))...};
            const vec<T> gradient[n] = {get_raw(dy + i + k * L, part)...};
            const int64_t from[n] = {taps.stride.at(i + k * L)...};
            mask<T> open[n] = {(static_cast<void>(k), every_lane<T>())...};
            const auto cell = [&](int64_t at, auto one) {
                constexpr int q = decltype(one)::value;
                const mask<T> hit = both(open[q], goal[q].match(get_raw(x + at, part)));
                open[q] = without(open[q], hit);
                const vec<T> value = choose<T>(hit, gradient[q], vec<T>{});
                if constexpr (__is_same(decltype(part), All))
                    if (past) return put_raw_past(dx + at, value);
                put_raw(dx + at, value, part);
            };
            for (int64_t d = 0; d < taps.d; ++d)
                for (int64_t h = 0; h < taps.h; ++h)
                    for (int64_t w = 0; w < taps.w; ++w) {
                        const int64_t at = taps.first + d * taps.plane + h * taps.line + w * taps.cell;
                        (cell(at + from[k], number<k>{}), ...);
                    }
        }(std::make_integer_sequence<int, n>{});
    });
}

// The cells that belong to window o: its own and those before it that no window has; the last window takes the rest.
inline Range owned(const Reach &axis, int64_t o) {
    return {o == 0 ? 0 : axis.at(o - 1).hi, o + 1 == axis.count ? axis.cells : axis.at(o).hi};
}

// Zero for the cells that belong to windows (od, oh, all) but are in none.
template <class S>
void clear_gaps(const Volume &v, int64_t n, int64_t od, int64_t oh, S *dx) {
    const Range rd = v.D.at(od), rh = v.H.at(oh), ld = owned(v.D, od), lh = owned(v.H, oh);
    for (int64_t d = ld.lo; d < ld.hi; ++d)
        for (int64_t h = lh.lo; h < lh.hi; ++h) {
            S *row = dx + v.cell(n, d, h, 0);
            if (d < rd.lo || d >= rd.hi || h < rh.lo || h >= rh.hi) {
                std::fill_n(row, v.W.cells * v.C, S{});
                continue;
            }
            int64_t done = 0;
            for (int64_t ow = 0; ow < v.W.count; ++ow) {
                const Range rw = v.W.at(ow);
                if (rw.size() == 0) continue;
                if (rw.lo > done) std::fill_n(row + done * v.C, (rw.lo - done) * v.C, S{});
                done = rw.hi;
            }
            std::fill_n(row + done * v.C, (v.W.cells - done) * v.C, S{});
        }
}

template <class S>
int32_t max_grad_of_tiles(const vg_pool *p, const S *x, const S *y, const S *dy, S *dx, const vg_run *run) {
    constexpr int L = lanes<lane<S>>;
    const Volume v(p, L);
    const RowPlan plan = plan_rows(p, v, sizeof(S), run->threads);
    const int64_t bytes = p->batch * v.D.cells * v.H.cells * v.W.cells * v.C * static_cast<int64_t>(sizeof(S));
    const bool past = goes_past(dx, bytes, v.C * static_cast<int64_t>(sizeof(S)));
    return each_block(plan.blocks, plan.threads, run, [&](const Blocks::Block &b, int) {
        for (int64_t od = b.depth.lo; od < b.depth.hi; ++od)
            for (int64_t oh = b.height.lo; oh < b.height.hi && !cancelled(run); ++oh) {
                clear_gaps(v, b.image, od, oh, dx);
                each_run(v, b.image, od, oh, {0, v.C}, L, [&](const Taps &taps, int64_t ow, int64_t length, bool) {
                    const int64_t o = v.window(b.image, od, oh, ow);
                    first_match_takes(taps, x, y + o, dy + o, dx, length, past);
                });
            }
        if (past) end_of_puts_past();
    });
}

// Whether that way is open: windows on every axis, none of which overlap, and channels enough to run over.
template <class S>
bool by_tiles(const vg_pool *p) {
    for (const vg_span &axis : p->axis)
        if (axis.out == 0 || windows_of(axis).longest() > 1) return false;
    return !p->near_ties && !Volume(p, lanes<lane<S>>).flat;
}

}  // namespace VG_NAMESPACE::pool
