// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { teller } from "./told";
import korean from "./told.ko.json";

describe("what the server says, in Korean", () => {
  const tell = teller(korean);

  it("a fault is told with its parts", () => {
    const fault = "VG012 MaxPool3DGradGrad: second.grad must have the shape of orig_input, [2,2,2,2,2]; got [2,1,1,1,2].";
    expect(tell(fault)).toBe("VG012 MaxPool3DGradGrad: second.grad — orig_input의 모양인 [2,2,2,2,2]이어야 합니다. 실제: [2,1,1,1,2].");
    expect(tell(`${fault}\n    a line`)).toContain("\n    a line");
    expect(tell("VG006 MaxPool3D: p.ksize[1] must be at least 1; got 0.")).toContain("1 이상이어야 합니다. 실제: 0.");
  });

  it("the pattern that says most is the one", () => {
    expect(tell.must("VG016", "be at least as large as the window under VALID padding, 4 cells in depth")).toBe("VALID 패딩에서 창만큼, 깊이 4칸 이상이어야 합니다");
    expect(tell("Make grad like orig_input")).toBe("grad을(를) orig_input와(과) 같은 모양으로 만들기");
    expect(tell("ksize, strides changed")).toBe("ksize, strides이(가) 바뀜");
  });

  it("what has no sentence keeps its words behind what its code means", () => {
    expect(tell.must("VG043", "be a wholly unheard thing of nine words, or so")).toContain("be a wholly unheard thing");
    expect(tell("a text of somebody else")).toBe("a text of somebody else");
  });

  it("the report of an import, line by line", () => {
    expect(tell("changed: second: is now called b: its id held characters that separate names")).toBe("바뀜: second: 이제 이름이 b입니다. id에 이름을 나누는 글자가 있었습니다");
    expect(tell("lost: x: something new\n  fix: Take k away")).toBe("잃음: x: something new\n  고치기: k 없애기");
  });
});
