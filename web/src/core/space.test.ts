// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { AxisPlace, Place } from "../generated/api";
import { bordersOf } from "./outlines";
import { alongText, planesOf, pointAt, pointText, sameSpot } from "./space";

const axis = (step: number[], low = "", high = ""): AxisPlace => ({ spacing: Math.hypot(...step) || 1, first: 0, step, low, high });
const names = ["N", "D", "H", "W", "C"];
const shape = [1, 4, 6, 8, 1];
const place = (axes: (AxisPlace | null)[], origin: number[]): Place => ({ unit: "mm", axes, origin, lost: "" });

describe("planes of a volume", () => {
  // Depth runs to the left, height upwards, width to the back: a scan that was taken from the side.
  const sideways = place([null, axis([-2, 0, 0], "R", "L"), axis([0, 0, 3], "I", "S"), axis([0, -1, 0], "A", "P"), null], [10, 20, 30]);

  it("are turned as people look at them, however the file has them", () => {
    const [axial, coronal, sagittal] = planesOf(shape, names, sideways);
    expect(axial).toMatchObject({ view: "axial", axes: [3, 1], normal: 2, flip: [false, false], letters: ["A", "L", "P", "R"], voxel: [1, 2] });
    expect(coronal).toMatchObject({ view: "coronal", axes: [2, 1], normal: 3, flip: [true, false], letters: ["S", "L", "I", "R"], voxel: [3, 2] });
    expect(sagittal).toMatchObject({ view: "sagittal", axes: [2, 3], normal: 1, flip: [true, false], letters: ["S", "P", "I", "A"], voxel: [3, 1] });
  });

  it("are as stored where nobody knows better, and say no letters", () => {
    const planes = planesOf(shape, names, null);
    expect(planes.map(({ axes, normal, view }) => [...axes, normal, view])).toEqual([[2, 3, 1, "stored"], [1, 3, 2, "stored"], [1, 2, 3, "stored"]]);
    expect(planes.every(({ letters, flip }) => letters.join("") === "" && !flip[0] && !flip[1])).toBe(true);
    // Two axes that both lead mostly to one side make no anatomical planes.
    const flat = place([null, axis([1, 0, 0]), axis([1, 0.5, 0]), axis([0, 0, 1]), null], [0, 0, 0]);
    expect(planesOf(shape, names, flat)[0]!.view).toBe("stored");
    expect(planesOf([5, 7], ["axis 0", "axis 1"], null)).toHaveLength(1);
    expect(planesOf([5], ["axis 0"], null)).toHaveLength(0);
    expect(planesOf([2, 1, 4, 6, 8], ["N", "C", "D", "H", "W"], null).map(({ normal }) => normal)).toEqual([2, 3, 4]);
  });

  it("know where a voxel lies", () => {
    expect(pointAt(sideways, [0, 1, 2, 3, 0])).toEqual([8, 17, 36]);
    expect(pointText([8, -17, 36.125], "mm")).toBe("8 R, 17 P, 36.13 S mm");
    expect(pointAt(place([null, axis([1, 0, 0])], []), [0, 1])).toBeNull();
    const sized: Place = { unit: "um", axes: [null, { spacing: 0.5, first: 2, step: [], low: "", high: "" }], origin: [], lost: "" };
    expect(alongText(sized, ["N", "D"], [0, 3])).toBe("D 3.5 um");
  });

  it("find the same spot in another tensor, in space or by index", () => {
    const from = { shape, names, place: sideways };
    // Half as many voxels, each between two of the others; the axes in another order.
    const pooled = place([null, null, axis([0, -2, 0]), axis([-4, 0, 0]), axis([0, 0, 6])], [9, 19.5, 31.5]);
    expect(sameSpot(from, [0, 3, 4, 5, 0], { shape: [1, 2, 4, 2, 3], names: ["N", "C", "H", "D", "W"], place: pooled })).toEqual([0, 1, 2, 1, 2]);
    // It ends before there.
    expect(sameSpot(from, [0, 0, 0, 7, 0], { shape: [1, 1, 2, 2, 3], names: ["N", "C", "H", "D", "W"], place: pooled })).toBeNull();
    expect(sameSpot({ ...from, place: null }, [0, 1, 2, 3, 0], { shape: [1, 4, 6, 8, 2], names, place: null })).toEqual([0, 1, 2, 3, 0]);
    expect(sameSpot({ ...from, place: null }, [0, 1, 2, 3, 0], { shape: [1, 2, 3, 4, 1], names, place: null })).toBeNull();
  });
});

describe("outlines", () => {
  it("lie between cells of different labels, and at the edge", () => {
    const found = bordersOf([1, 1, 0, 2], 2, 2);
    expect(found.get(1)).toEqual([[0, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 1], [1, 0, 2, 0], [1, 1, 2, 1], [2, 0, 2, 1]]);
    expect(found.get(2)).toHaveLength(4);
    expect(found.has(0)).toBe(false);
  });
});
