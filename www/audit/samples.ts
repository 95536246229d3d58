/** The samples: files that come with the page, honest and of each kind of lie. */
import { element } from "../shared/dom.js";

export interface Sample {
  file: string;
  family: "honest" | "lie" | "contradiction" | "damaged";
  title: string;
  says: string;
  code: string | null;
  bytes: number;
}

const FAMILIES: Record<Sample["family"], string> = {
  honest: "Honest",
  lie: "A provider that lies",
  contradiction: "A provider that contradicts itself",
  damaged: "No audit file",
};

const FOLDER = "./samples/";

export async function loadSamples(): Promise<Sample[]> {
  const response = await fetch(`${FOLDER}index.json`);
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return (await response.json()) as Sample[];
}

export async function openSample({ file }: Sample): Promise<Blob> {
  const response = await fetch(`${FOLDER}${file}`);
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.blob();
}

export function samplesView(samples: readonly Sample[], open: (sample: Sample) => void): HTMLElement {
  const button = (sample: Sample) => {
    const made = element(
      "button",
      { type: "button", class: "sample", "data-testid": "sample", "data-file": sample.file, "data-family": sample.family },
      element("span", { class: "sample-title" }, sample.title),
      element("small", {}, sample.says),
    );
    made.addEventListener("click", () => open(sample));
    return element("li", {}, made);
  };
  const groups = (Object.keys(FAMILIES) as Sample["family"][]).map((family) =>
    element(
      "div",
      { class: "sample-family", "data-family": family },
      element("h4", {}, FAMILIES[family]),
      element("ul", {}, ...samples.filter((sample) => sample.family === family).map(button)),
    ),
  );
  return element("div", { class: "sample-families" }, ...groups);
}
