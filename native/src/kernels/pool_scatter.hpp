// SPDX-License-Identifier: Apache-2.0
// The gradient of max pooling where windows overlap: every window adds its gradient to the cell of its match. A block
// has the planes of cells that its windows reach as sums in a ring in scratch memory; a plane that no later window
// reaches is written out. Windows at the edge of a block are taken by both neighbours, so that no two threads ever add
// to the same cell, and each cell gets its windows in their order, however the volume is cut.
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

// The position of the match in its window; all bits set where there is none.
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

struct ScatterPlan {
    Volume v;
    Reach D, H, W;   // from cells to the windows over them
    int64_t C;
    int64_t planes;  // of cells in the ring
    int64_t rows;    // of a plane
    int64_t row;     // sums of a row
    int64_t line;    // elements of a row of windows
    int64_t bytes;   // of scratch memory per thread
    int32_t threads;
    Blocks blocks;
    static constexpr double kRingBytes = 1 << 19;

    ScatterPlan(const vg_pool *p, int64_t code_bytes, int64_t sum_bytes, int64_t value_bytes, int lane_count,
                int32_t wanted)
        : v(p, lane_count), D(windows_of(p->axis[0])), H(windows_of(p->axis[1])), W(windows_of(p->axis[2])),
          C(p->channels), planes(at_least_one(v.D.longest())), rows(1) {
        threads = useful_threads(p, cells_in(p), wanted);
        blocks = {p->batch, D.count, H.count, C, at_least_one(D.count), at_least_one(H.count), at_least_one(C)};
        // A few heights and those of a window must fit; if not with all channels, then with some.
        const double window = static_cast<double>(v.H.longest());
        const auto height = [&] {
            return static_cast<double>(at_least_one(planes * W.count * blocks.channels * sum_bytes));
        };
        const auto large = [&] { return height() * (window + 8) > 2 * kRingBytes; };
        if (takes(p->how, Path::channel_blocks, !v.flat && C > 64, large())) {
            if (!large()) blocks.channels = 64;
            while (blocks.channels > 64 && large()) blocks.channels = (blocks.channels / 2 + 63) / 64 * 64;
        }
        blocks.limit_heights(kRingBytes / height() - window);
        blocks.refine(p->how, threads > 1 ? threads * 2 : 1, planes > 1);
        for (int64_t h = 0; h < H.count; h += blocks.heights)
            rows = std::max(rows, reached({h, std::min(H.count, h + blocks.heights)}).size());
        row = (W.count * blocks.channels + 31) / 16 * 16;
        line = (std::max(v.W.count * blocks.channels, v.inner_run()) + 127) / 64 * 64;
        bytes = planes * rows * row * sum_bytes + line * (2 * code_bytes + value_bytes) + 4 * 64;
        bytes = (bytes + 63) / 64 * 64;
    }
    // The rows of cells of a block and all others that its windows reach.
    Range reached(Range heights) const {
        const Range cells = v.H.at(H.at(heights));
        return cells.size() > 0 ? Range{std::min(cells.lo, heights.lo), std::max(cells.hi, heights.hi)} : heights;
    }
};

template <class S, class Code>
class Scatter {
    using A = sum_t<S>;
    static constexpr int L = lanes<A>;
    static constexpr Code nowhere = static_cast<Code>(~Code{});

public:
    static ScatterPlan plan(const vg_pool *p, int32_t threads) {
        return ScatterPlan(p, sizeof(Code), sizeof(A), sizeof(S), lanes<typename Compared<S, Code>::T>, threads);
    }
    // Either x and y, from which the codes are made, or the codes.
    struct Arrays {
        const S *x, *y;
        const Code *codes;
        const S *dy;
        S *dx;
    };
    Scatter(const vg_pool *p, const ScatterPlan &plan, const Arrays &arrays, const vg_run *run)
        : plan_(plan), v(plan.v), D(plan.D), H(plan.H), W(plan.W), C(plan.C), data(arrays), run_(run) {
        const bool whole = plan.blocks.channels >= C;
        const int64_t unit = (whole ? W.count * C : C | plan.blocks.channels) * static_cast<int64_t>(sizeof(S));
        const int64_t cells = cells_in(p) * static_cast<int64_t>(sizeof(S));
        const int64_t windows = windows_in(p) * static_cast<int64_t>(sizeof(S));
        past_ = writes_past(p->how, data.dx, cells, unit, 2 * (cells + windows));
    }

    void block(const Blocks::Block &b, char *memory) const {
        const Ring ring = make_ring(b, memory);
        const Range windows = D.at(b.depth), heights = H.at(b.height);
        int64_t done = std::min(b.depth.lo, v.D.at(windows).lo);  // planes before this one are written
        if (windows.size() == 0) done = b.depth.lo;
        for (int64_t od = windows.lo; od < windows.hi; ++od) {
            const Range rd = v.D.at(od);
            if (rd.size() == 0) continue;
            for (; done < std::min(rd.lo, b.depth.hi) && !cancelled(run_); ++done) write_plane(ring, b, done);
            for (int64_t oh = heights.lo; oh < heights.hi && !cancelled(run_); ++oh) add_row(ring, od, oh);
        }
        for (; done < b.depth.hi && !cancelled(run_); ++done) write_plane(ring, b, done);
        if (past_) settle();
    }

private:
    struct Ring {
        A *sums;
        Code *codes, *spaced_codes;
        S *spaced;
        Range rows, channel;
        int64_t image;
    };

    Ring make_ring(const Blocks::Block &b, char *memory) const {
        const auto take = [&](int64_t bytes) {
            char *from = memory;
            memory += (bytes + 63) / 64 * 64;
            return from;
        };
        Ring ring;
        const int64_t all = plan_.planes * plan_.rows * plan_.row;
        ring.sums = reinterpret_cast<A *>(take(all * static_cast<int64_t>(sizeof(A))));
        ring.codes = reinterpret_cast<Code *>(take(plan_.line * static_cast<int64_t>(sizeof(Code))));
        ring.spaced_codes = reinterpret_cast<Code *>(take(plan_.line * static_cast<int64_t>(sizeof(Code))));
        ring.spaced = reinterpret_cast<S *>(take(plan_.line * static_cast<int64_t>(sizeof(S))));
        ring.rows = plan_.reached(b.height), ring.channel = b.channel, ring.image = b.image;
        std::fill_n(ring.sums, all, A(0));
        std::fill_n(ring.spaced, v.flat ? plan_.line : 0, no_number<S>());
        return ring;
    }
    A *sums_of(const Ring &ring, int64_t d, int64_t h) const {
        return ring.sums + (d % plan_.planes * plan_.rows + h - ring.rows.lo) * plan_.row;
    }

    // The finished sums of a plane, which then starts anew.
    void write_plane(const Ring &ring, const Blocks::Block &b, int64_t d) const {
        const int64_t channels = ring.channel.size();
        for (int64_t h = b.height.lo; d >= b.depth.lo && h < b.height.hi; ++h) {
            const A *sums = sums_of(ring, d, h);
            S *out = data.dx + v.cell(ring.image, d, h, 0) + ring.channel.lo;
            if (channels == C) {
                write(out, sums, W.count * C);
            } else {
                for (int64_t w = 0; w < W.count; ++w) write(out + w * C, sums + w * channels, channels);
            }
        }
        std::fill_n(sums_of(ring, d, ring.rows.lo), plan_.rows * plan_.row, A(0));
    }
    void write(S *out, const A *sums, int64_t length) const {
        each_vector<L>(length, [&](int64_t i, auto part) {
            if constexpr (__is_same(decltype(part), All))
                if (past_) return put_past(out + i, get(sums + i, part));
            put(out + i, get(sums + i, part), part);
        });
    }

    // A row of windows: finds the matches and adds the gradients to them.
    void add_row(const Ring &ring, int64_t od, int64_t oh) const {
        const int64_t o = v.window(ring.image, od, oh, 0) + ring.channel.lo, channels = ring.channel.size();
        if (v.H.at(oh).size() == 0) return;
        const Code *codes = data.codes ? data.codes + o : ring.codes;
        if (!data.codes) find_row(ring, od, oh, data.y + o);
        const int64_t code_stride = data.codes ? C : channels;
        Aim aim(*this, ring, od, oh);
        for (int64_t ow = 0; ow < v.W.count; ++ow) {
            const Range rw = v.W.at(ow);
            if (rw.size() == 0) continue;
            const bool together = ow == v.inner.lo && v.inner.size() > 0;
            aim.at(rw);
            add_windows(aim, codes + ow * code_stride, code_stride, data.dy + o + ow * C, channels,
                        together ? v.inner.size() : 1);
            if (together) ow = v.inner.hi - 1;
        }
    }
    class Aim;
    // Windows at equal steps, from the one that `aim` is at.
    void add_windows(const Aim &aim, const Code *codes, int64_t code_stride, const S *dy, int64_t channels,
                     int64_t windows) const {
        with_few(channels, [&](auto few) {
            const int64_t step = v.comb.step * few;
            for (int64_t ow = 0; ow < windows; ++ow, codes += code_stride, dy += C)
                for (int64_t c = 0; c < few; ++c)
                    if (codes[c] != nowhere) aim.sum(codes[c])[ow * step + c] += widen(dy[c]);
        });
    }
    void find_row(const Ring &ring, int64_t od, int64_t oh, const S *row) const {
        const auto find = [&](const Taps &taps, int64_t ow, int64_t length, bool many) {
            Code *codes = ring.codes + ow * ring.channel.size();
            const S *y = row + ow * C;
            if (!many || !v.flat || v.comb.step == 1) return codes_of_match(taps, data.x, y, codes, length);
            space_out(y, ring.spaced, v.inner.size(), v.comb.step, C, no_number<S>());
            codes_of_match(taps, data.x, ring.spaced, ring.spaced_codes, length);
            close_up(ring.spaced_codes, codes, v.inner.size(), v.comb.step, C);
        };
        each_run(v, ring.image, od, oh, ring.channel, find);
    }

    // From a code to the sum it means.
    class Aim {
    public:
        Aim(const Scatter &self, const Ring &ring, int64_t od, int64_t oh)
            : self_(self), ring_(ring), rd_(self.v.D.at(od)), rh_(self.v.H.at(oh)) {}
        // On to a window of these cells along the width.
        void at(Range rw) {
            base_ = rw.lo * ring_.channel.size();
            if (rw.size() == width_) return;
            width_ = rw.size();
            if constexpr (sizeof(Code) == 1) fill_table();
        }
        A *sum(Code code) const {
            if constexpr (sizeof(Code) == 1) return table_[code] + base_;
            return find(code) + base_;
        }

    private:
        void fill_table() {
            int64_t code = 0;
            for (int64_t d = rd_.lo; d < rd_.hi; ++d) {
                A *row = self_.sums_of(ring_, d, rh_.lo);
                for (int64_t h = 0; h < rh_.size(); ++h, row += self_.plan_.row)
                    for (int64_t w = 0; w < width_ && code < nowhere; ++w)
                        table_[code++] = row + w * ring_.channel.size();
            }
        }
        A *find(int64_t code) const {
            const int64_t w = code % width_, h = code / width_ % rh_.size(), d = code / width_ / rh_.size();
            return self_.sums_of(ring_, rd_.lo + d, rh_.lo + h) + w * ring_.channel.size();
        }
        const Scatter &self_;
        const Ring &ring_;
        const Range rd_, rh_;
        int64_t width_ = 0, base_ = 0;
        A *table_[sizeof(Code) == 1 ? 255 : 1];
    };

    const ScatterPlan &plan_;
    const Volume &v;
    const Reach D, H, W;
    const int64_t C;
    const Arrays data;
    const vg_run *run_;
    bool past_;  // write around the caches
};

}  // namespace VG_NAMESPACE::pool
