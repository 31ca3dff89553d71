"use strict";
// Each explorer is an element with data-explorer, and its values as JSON inside.

const shown = (value, digits) => value.toFixed(digits).replace("-", "−");
const percent = (share) => shown(100 * share, 2);

// From a value to its pixel in a plot.
const placer = (plane) => ({
  x: (v) => plane.left + ((v - plane.x0) / (plane.x1 - plane.x0)) * (plane.right - plane.left),
  y: (v) => plane.bottom - ((v - plane.y0) / (plane.y1 - plane.y0)) * (plane.bottom - plane.top),
});

function moveCursor(svg, plane, value) {
  const cursor = svg.querySelector(".cursor");
  const at = placer(plane).x(value).toFixed(2);
  cursor.setAttribute("x1", at);
  cursor.setAttribute("x2", at);
}

// Pairs of 16-bit numbers: the places from which on, and before which, a sample is right.
function decoded(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Uint16Array.from({ length: bytes.length / 2 }, (_, k) => view.getUint16(2 * k, true));
}

// The share of right samples of each class at a place of the slider; null without samples.
function recallsAt(place, ends, samples) {
  let at = 0;
  return samples.map((count) => {
    let right = 0;
    for (const last = at + count; at < last; at++) {
      if (ends[2 * at] <= place && place < ends[2 * at + 1]) right++;
    }
    return count ? right / count : null;
  });
}

function tauExplorer(root, values) {
  const ends = decoded(values.ends);
  const slider = root.querySelector("input[type=range]");
  const number = root.querySelector("input[type=number]");
  const numbers = root.querySelectorAll("[data-measure]");
  const headings = root.querySelectorAll("[data-tau-shown]");
  const cells = root.querySelectorAll("[data-class]");
  const curves = root.querySelector("[data-plot=curves] svg");
  const dots = root.querySelector("[data-plot=dots] svg");
  const told = root.querySelector("[data-told]");
  const dotPlace = placer(values.dots);
  let recalls = [];

  // The result has a place of its own, which may lie between two steps of the slider.
  function placeOf(tau) {
    if (tau === values.tau) return values.place;
    const step = Math.round((tau - values.low) / values.step);
    return values.between && step >= values.place ? step + 1 : step;
  }

  function show(tau) {
    const place = placeOf(tau);
    recalls = recallsAt(place, ends, values.samples);
    headings.forEach((heading) => { heading.textContent = shown(tau, 3); });
    numbers.forEach((cell, k) => {
      const mean = values.measures[k].reduce((sum, w, c) => sum + w * (recalls[c] ?? 0), 0);
      cell.textContent = percent(mean);
    });
    cells.forEach((cell, c) => {
      cell.textContent = recalls[c] === null ? "–" : (100 * recalls[c]).toFixed(1);
    });
    const points = recalls.map((recall, c) =>
      recall === null ? "" : `M${dotPlace.x(c + 1).toFixed(2)} ${dotPlace.y(100 * recall).toFixed(2)}h0`);
    [...dots.querySelectorAll(".dots")].at(-1).setAttribute("d", points.join(""));
    moveCursor(curves, values.curves, tau);
  }

  slider.addEventListener("input", () => {
    number.value = slider.value;
    show(slider.valueAsNumber);
  });
  number.addEventListener("input", () => {
    if (!number.checkValidity() || number.value === "") return;
    slider.value = number.value;
    show(number.valueAsNumber);
  });
  for (const button of root.querySelectorAll("button[data-tau]")) {
    button.addEventListener("click", () => {
      const tau = Number(button.dataset.tau);
      slider.value = tau;
      number.value = tau.toFixed(3);
      show(tau);
    });
  }
  dots.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(dots.getScreenCTM().inverse());
    const shares = (at.x - values.dots.left) / (values.dots.right - values.dots.left);
    const c = Math.round(shares * (values.classes.length + 1)) - 1;
    if (c < 0 || c >= values.classes.length) return;
    const share = recalls[c] === null ? "no samples" : `${(100 * recalls[c]).toFixed(1)} %`;
    told.textContent = `${values.classes[c]}: ${share}`;
  });
  show(values.tau);
}

function targetExplorer(root, values) {
  const slider = root.querySelector("input[type=range]");
  const said = root.querySelector("[data-said]");
  const words = JSON.parse(slider.dataset.words);
  const accuracy = root.querySelector("[data-plot=accuracy] svg");
  const ece = root.querySelector("[data-plot=ece] svg");

  function show() {
    const place = slider.valueAsNumber;
    said.textContent = words[place];
    slider.setAttribute("aria-valuetext", words[place]);
    for (const row of ["left", "moved"]) {
      values[row][place].forEach((value, k) => {
        const cell = root.querySelector(`[data-row=${row}] [data-column="${k}"]`);
        cell.textContent = k < 2 ? percent(value) : value === null ? "∞" : shown(value, 3);
      });
    }
    moveCursor(accuracy, values.accuracy, values.places[place]);
    moveCursor(ece, values.ece, values.places[place]);
  }

  slider.addEventListener("input", show);
  show();
}

const explorers = { tau: tauExplorer, target: targetExplorer };
for (const root of document.querySelectorAll("[data-explorer]")) {
  const values = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  root.querySelector(".controls").hidden = false;
  explorers[root.dataset.explorer](root, values);
}
