// What a refit that waits says of the rows that have come since it was made.
import { $, all, ask, number } from "./common.js";

for (const box of all("[data-shadow]")) {
  const place = $(".said-shadow", box);
  try {
    const found = await ask(`/api/v1/proposals/${box.dataset.shadow}/shadow`);
    place.textContent = "";
    const figures = place.appendChild(document.createElement("div"));
    figures.className = "figures";
    for (const [value, name] of [[found.rows, "rows it has not seen"], [found.in_force, "alarms of the model in force"], [found.shadow, "alarms there would be"], [found.both, "of them the same"]]) {
      const card = figures.appendChild(document.createElement("div"));
      card.className = "figure-card";
      card.appendChild(document.createElement("b")).textContent = number(value);
      card.appendChild(document.createElement("span")).textContent = name;
    }
    for (const sentence of found.sentences) place.appendChild(document.createElement("p")).textContent = sentence;
  } catch (error) { place.textContent = error.message; }
}
